"""Figures of the notebooks: frames in, one figure out.

One module a subject; import the one that is needed, such as
`from ragkit.report.plots.retrieval import ranking`. Style, colours and markers are those of
`ragkit.report.figures`, whose `save` writes a figure. Everywhere

- a frame has the columns that the docstring names; `value` is drawn with its interval from `low`
  to `high` (NaN: no interval), in the unit of `label`;
- `printed` are rows of `ragkit.datasets.reported.load` of the table that the docstring names;
- `label` says what is measured, with unit and direction; `note` on which data;
- `order` are categories from the top; those without a row are left out.
"""
