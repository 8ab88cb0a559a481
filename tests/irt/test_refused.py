"""What is refused: the call, the error, and words of its message."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from ragkit import irt
from ragkit.errors import DataError, MissingData, UsageError
from ragkit.irt.likelihood import Graded, get_likelihood
from tests.irt.conftest import EM, graded, matrix

SCORES = irt.simulate(15, 40, missing=0.1, seed=11).scores
SCORE, ITEM, SUBJECT = SCORES["score"], SCORES["item_id"], SCORES["subject_id"]
APART = SCORES[(SUBJECT < "s07") == (ITEM < "q20")]
WIDE, FORTY = matrix(irt.simulate(6, 5, seed=0).scores), irt.simulate(40, 30, seed=31).scores
LEVELS = graded(9, n=20, m=5)[0].assign(q04=lambda frame: frame["q04"].clip(lower=1))
ENDS = pd.DataFrame([[0.0, 1.0], [1.0, 1.0], [0.5, 1.0]])
NUMBERS = pd.DataFrame({"subject_id": [7, 8], "item_id": [1, 2], "score": [0.5, 2.0]})
ONE_FAMILY = pd.Series("a", FORTY["subject_id"].unique())
cells = SCORES.assign
RESULT, FORM = irt.fit(SCORES), irt.short_form(FORTY, 12)
OTHER = irt.fit(cells(item_id=ITEM + "x"))
TWO = [irt.fit(irt.nearest(FORTY, v), **EM) for v in ([0, 0.5, 1], [0, 0.25, 0.5, 1])]
NEW = SCORES[SUBJECT == "s07"]
THREE = Graded((1, 3, 5), (1, 5))
fit, short = partial(partial, irt.fit), partial(partial, irt.short_form)
own, levels = partial(fit, SCORES), partial(fit, LEVELS, score_range=(0, 3))
simulate, estimate = partial(partial, irt.simulate), partial(partial, FORM.estimate)


def wide(cell):
    frame = WIDE.astype(object if isinstance(cell, str) else float)
    frame.loc["s2", "q1"] = cell
    return fit(frame)


REFUSED = [
    # scores to be fitted
    (fit(cells(score=SCORE + 0.5)), DataError, r"outside the range \[0, 1\]"),
    (fit(cells(score=SCORE * 97)), DataError, r"score_range=\(0, 100\)"),
    (fit(cells(score=SCORE.where(SCORES.index != 3))), DataError, "row 4 .*subject .*found nan"),
    (fit(cells(score=SCORE.mask(SCORES.index == 2, np.inf))), DataError, "row 3 .* found inf"),
    (fit(cells(score="good")), DataError, "'s00', item 'q00'.* number as its score, found 'good'"),
    (fit(cells(score=SCORE.astype(object).mask(SCORES.index == 1, " "))), DataError, "2 .*' '"),
    (fit(pd.concat([SCORES, SCORES.iloc[[5]]])), DataError, "repeats the cell of row 6"),
    (fit(SCORES.iloc[:0]), DataError, "no rows"),
    (fit(SCORES[SUBJECT == "s00"]), DataError, "hold 1 and"),
    (fit(SCORES[ITEM == "q00"]), DataError, "and 1$"),
    (fit(cells(score=0.3)), DataError, "all scores are the same"),
    (fit(SCORES.rename(columns={"item_id": "item"})), DataError, "lack the column 'item_id'"),
    (fit(cells(item_id=ITEM.mask(SCORES.index == 1))), DataError, "row 2 .* empty"),
    (fit(APART), DataError, r"2 parts .*7 subjects x 20 items"),
    (fit(NUMBERS), DataError, r"\(subject 8, item 2\) has the score 2"),
    *((wide(cell), DataError, "subject 's2', item 'q1'") for cell in ("good", " ", np.inf)),
    (fit(WIDE.assign(q3=np.nan)), DataError, "item 'q3' has no score"),
    (fit(WIDE.rename({"s1": None})), DataError, "row 2 of the scores has an empty subject id"),
    (own(likelihood="bernoulli"), DataError, "Bernoulli likelihood takes scores of 0 or 1"),
    (fit(ENDS, likelihood="fractional", prior="none"), DataError, "item 1 has the same extreme"),
    (levels(**EM, prior="none"), DataError, "'q04' never got the score 0"),
    (levels(**EM, levels=(0, 1, 2)), DataError, "the score 3 is none of the levels 0, 1, 2"),
    (own(**EM), DataError, "distinct values"),
    # options of a fit
    (own(engine="nutz"), UsageError, "did you mean 'nuts'"),
    (own(model="3pl"), UsageError, "'3pl'"),
    (own(disc="any"), UsageError, "'any'"),
    (own(epochs=5), UsageError, "no option of engine 'em' 'epochs'"),
    (own(score_range=(1, 0)), UsageError, "not an interval"),
    (own(score_range=3), UsageError, "not a pair"),
    (own(prior="flat"), UsageError, "no prior 'flat'"),
    (own(prior="none", engine="nuts"), UsageError, "cannot fit prior='none'"),
    (own(prior=irt.Prior(), engine="py-irt"), UsageError, "cannot fit prior=Prior"),
    (own(prior=irt.Prior(diff_sd=-1)), UsageError, "number of at least 0"),
    (own(prior=irt.Prior(disc_sd=0)), UsageError, "should be positive"),
    (own(max_iter=0), UsageError, "max_iter should be a whole number of at least 1"),
    (own(engine="py-irt", epochs=0), UsageError, "epochs should be a whole number of at least 1"),
    (own(engine="nuts", draws=0), UsageError, "draws should be a whole number of at least 4"),
    (own(engine="nuts", draws=3), UsageError, "draws should be a whole number of at least 4"),
    (own(engine="py-irt", group="judge"), UsageError, "cannot fit group='judge'"),
    (own(disconnected="ignore"), UsageError, "disconnected"),
    (levels(**EM, engine="nuts"), UsageError, "cannot fit likelihood='graded'"),
    (levels(likelihood="cb", levels=(0, 1, 2, 3)), UsageError, "levels are for"),
    (levels(**EM, levels=(0, 2, 1)), UsageError, "ascending"),
    (levels(**EM, levels=(0, 4)), UsageError, "a level should be .* from 0.0 to 3.0, found 4"),
    (levels(**EM, levels=3), UsageError, "levels=3 are not 2 to 20 ascending numbers"),
    # likelihoods
    (partial(get_likelihood, "cbb"), UsageError, "no likelihood 'cbb'"),
    (partial(get_likelihood, "graded"), UsageError, "no likelihood 'graded'"),
    (partial(THREE.categories, [0, 0.25]), DataError, "the score 2 is none of the levels"),
    (partial(Graded, [1], (1, 5)), UsageError, "are not 2 to 20 ascending numbers"),
    (partial(Graded, [1, 1, 5], (1, 5)), UsageError, "are not 2 to 20 ascending numbers"),
    (partial(Graded, np.linspace(1, 5, 21), (1, 5)), UsageError, "are not 2 to 20 ascending"),
    (partial(Graded, (3, 0), (1, 5)), UsageError, "a level should be .* from 1 to 5, found 0"),
    (partial(Graded, (3, 6), (1, 5)), UsageError, "a level should be .* from 1 to 5, found 6"),
    # what is asked of a fit
    (partial(RESULT.pointwise, cells(score=5.0)), DataError, "outside the range"),
    (partial(TWO[0].pointwise, FORTY), DataError, "the score 0.* is none of the levels 0, 0.5, 1"),
    (partial(RESULT.pointwise, cells(score=np.nan)), DataError, "row 1 .* should have a number"),
    (partial(RESULT.pointwise, cells(score="good")), DataError, "row 1 .* should have a number"),
    (partial(RESULT.score, NEW.drop(columns="score")), DataError, "lack the column 'score'"),
    (partial(RESULT.score, NEW.assign(item_id="q999")), DataError, "not among"),
    (partial(RESULT.score, pd.concat([NEW, NEW])), DataError, "two scores"),
    (partial(irt.crps, RESULT, cells(score=1.5)), DataError, "outside the range"),
    (partial(irt.loo, RESULT), UsageError, "needs posterior draws"),
    (partial(irt.posterior_predictive, RESULT, draws=5), UsageError, "draws"),
    (partial(irt.agreement, {"one": RESULT}), UsageError, "at least two results"),
    (partial(irt.link, RESULT, OTHER), DataError, "share 0 items"),
    (partial(irt.link, *TWO), UsageError, "or levels of graded scores"),
    # comparisons
    (partial(irt.split_half, FORTY, by="judges"), UsageError, "of by"),
    (partial(irt.split_half, irt.simulate(5, 3).scores), DataError, "cannot be split"),
    (partial(irt.split_half, WIDE), DataError, "lack the column 'subject_id'"),
    (partial(irt.heldout, WIDE), DataError, "lack the column 'subject_id'"),
    (partial(irt.heldout, FORTY, folds=1), UsageError, "folds should be a whole number from 2 to"),
    (partial(irt.heldout, FORTY, folds=1201), UsageError, "folds should be .* from 2 to 1,200"),
    (partial(irt.compare_likelihoods, FORTY, folds=1), UsageError, "folds should be a"),
    (partial(irt.compare_likelihoods, FORTY, folds=2), DataError, "too many for a graded model"),
    (partial(irt.nearest, SCORES, []), UsageError, "found none"),
    # short forms
    (short(FORTY, 30), UsageError, "size should be a whole number from 1 to 29"),
    (short(FORTY[FORTY["subject_id"] < "s05"], 5), DataError, "too few for a short form"),
    (short(FORTY, 5, families=ONE_FAMILY[:1]), DataError, "has no family"),
    (short(FORTY, 5, families=ONE_FAMILY), DataError, "all subjects are of one family"),
    (short(FORTY.assign(score=FORTY["score"] * 100), 5), DataError, "outside the range"),
    (estimate(FORTY[FORTY["item_id"] == "q00"]), DataError, "no score on an item of the"),
    (estimate(FORTY.assign(score=7)), DataError, "outside the range"),
    (estimate(pd.concat([FORTY, FORTY])), DataError, "one number a subject and item"),
    (estimate(FORTY.assign(score="good")), DataError, "one number a subject and item"),
    # simulations
    (simulate(n_items=1), UsageError, "at least 2 subjects and 2 items"),
    (simulate(sessions=3), UsageError, "sessions is 1 or 2"),
    (simulate(shared=2000), UsageError, "shared at most the number of items"),
    (simulate(missing=1.0), UsageError, "0 <= missing < 1"),
    (simulate(negative=2), UsageError, "0 <= negative <= 1"),
    (simulate(score_range=(1, 0)), UsageError, "not an interval"),
    (simulate(likelihood="graded"), UsageError, "no likelihood 'graded'\n  hint: known: bern"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=range(len(REFUSED)))
def test_it_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("load", "file", "what"),
    [(irt.load, "fit.json", "fit"), (irt.load_short_form, "short_form.json", "short form")],
)
def test_what_is_not_there_or_not_saved_by_us(tmp_path, load, file, what):
    with pytest.raises(MissingData, match=f"{file} does not exist"):
        load(tmp_path)
    (tmp_path / file).write_text("{}")
    with pytest.raises(DataError, match=f"not a saved {what}"):
        load(tmp_path)
    (tmp_path / "fit.json").write_text('{"whole number ids": {}, "format": 99}')
    with pytest.raises(DataError, match="format 99"):
        irt.load(tmp_path)
