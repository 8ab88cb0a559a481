"""Figures of the notebooks: frames in, one figure out.

Values with intervals are drawn by `base.forest`, lines by `base.trends`; what else a subject needs is
in its module. Style and marks are those of `ragkit.report.figures`. Everywhere

- a frame has the columns that the docstring names; `value` is drawn with its interval from `low`
  to `high` (NaN: no interval), in the unit of `label`;
- `printed` are rows of `ragkit.datasets.reported.load` of the table that the docstring names;
- `label` says what is measured, with unit and direction; `note` on which data;
- `order` are categories from the top; those without a row are left out.
"""
