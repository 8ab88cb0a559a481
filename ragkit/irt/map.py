r"""The default engine: a second-order fit with empirical-Bayes priors and Laplace errors.

Model, for the score x of subject i on item j, rescaled to [0, 1], under judge k:

    log p(x) = x eta - A(eta),   eta = a_j (theta_i - b_j - s_k)
    theta_i ~ N(0, 1),  b_j ~ N(mu_b, sigma_b^2),  s_k ~ N(0, 5^2)
    log a_j ~ N(mu_a, sigma_a^2)        disc="positive"
        a_j ~ N(mu_a, sigma_a^2)        disc="signed"

A score of exactly 0 or 1 has a continuous-Bernoulli density that grows with |eta| without end, so
an item with many of them would become a step. Hence a soft end of the prior of a, the factor
exp(-(a / 6)^4 / 4), which is 0.98 at a = 3. An item whose scores all lie at one end says nothing
of its slope: its discrimination keeps its prior, and it is left out of point 2. The estimates of
the prior are bounded: sigma_b by 4 (under several judges by 12: the unit is then the spread of
ability within a judge's group), sigma_a by 1, the typical a by 4.

1. Newton's method on the joint log posterior of theta, s, b and a. Items do not share second
   derivatives, so the Hessian is an arrow: each item's 2 x 2 block is eliminated, what remains has
   the size of the subjects.
2. The prior's means and sds are set from the items themselves: moments of each item's posterior,
   taken by adaptive Gauss-Hermite quadrature around its mode (by Laplace's method for items with
   many scores), under a weak hyperprior on the sds. Judges' severities are taken from their mean,
   which goes into the difficulties: with mu_b free the two are one direction, and left to Newton
   and the updates of mu_b in turn it is climbed in steps of a few per cent.
3. The likelihood does not change under theta -> m + c theta, b -> m + c b, a -> a / c. A joint mode
   has no reason to keep the abilities' variance at one: it may trade their density against that of
   all the a, and with free prior means it drifts to theta = 0. So the centre of the prior of a in
   the objective is moved until mean(theta^2 + var(theta)) = 1.
4. Errors: the inverse Hessian at the mode (for items with few scores that of the likelihood with
   the items integrated out, see `widened`), with the location and scale directions projected out
   (`scale="sample"`: abilities have mean 0 and sd 1 over the subjects at hand) or with their
   sampling variance as a draw of N subjects from N(0, 1) put in (`scale="population"`). An item's
   own part of the variance is taken by quadrature, because 20 scores leave a skewed posterior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ragkit.errors import DataError
from ragkit.irt.data import Scores
from ragkit.irt.likelihood import Likelihood

QUADRATURE_MAX = 200  # scores per item beyond which Laplace's method is exact enough
DENSE_MAX = 6000  # subjects (and judges) whose joint covariance is still formed
HYPER_ROUNDS = 60
DISC_END = 6.0  # where the prior of a discrimination ends, softly
DISC_BOUNDS = (0.02, 4.0)  # of the typical discrimination
HYPER_TOL = 2e-3  # change of the prior's logarithms at which its updates stop
_TURNS = 20  # rounds in which signed items may still change sides
_WIDE = 2e7  # cells from which the couplings are kept in single precision


@dataclass(frozen=True)
class Hyper:
    """The prior of the items.

    `disc_mean` and `disc_sd` speak of log disc, or of disc itself for signed models. `centre` and
    `tilt` locate the prior inside the objective (see the module's point 3).
    """

    diff_mean: float = 0.0
    diff_sd: float = 1.5
    disc_mean: float = 0.0
    disc_sd: float = 0.4
    severity_sd: float = 5.0  # wide: a group's level is told by its scores
    centre: float = 0.0
    tilt: float = 0.0
    positive: bool = True

    def disc_prior(self) -> tuple[float, float]:
        """Return the location and sd of the prior of log disc (or disc) in the objective."""
        if self.positive:
            return self.disc_mean + self.tilt, self.disc_sd
        stretch = float(np.exp(self.tilt))
        return self.disc_mean * stretch, self.disc_sd * stretch

    def with_disc(self, mean: float, sd: float) -> Hyper:
        """Return the prior with new moments, the location of the objective's prior unmoved.

        For signed models, its root mean square is what stays.
        """
        if self.positive:
            tilt = self.tilt + self.disc_mean - mean
        else:
            before, after = np.hypot(self.disc_mean, self.disc_sd), np.hypot(mean, sd)
            tilt = self.tilt + float(np.log(before / after))
        return replace(self, disc_mean=mean, disc_sd=sd, tilt=tilt)

    def allowed(self, stretch: float, common: float | None) -> tuple[float, bool]:
        """Return the factor by which slopes may grow, and whether their bound cut it.

        Scores of exactly 0 or 1 have no highest continuous-Bernoulli density, so steep curves can
        pay without end. `common` is the alpha of a 1PL.
        """
        if common is not None:
            slope = common if self.positive else np.log(abs(common))
        else:
            centre, sd = self.disc_prior()
            slope = centre if self.positive else np.log(np.hypot(centre, sd))
        low, high = np.log(DISC_BOUNDS) - slope
        bounded = not low < np.log(stretch) < high
        step = np.clip(np.clip(np.log(stretch), low, high), -0.7, 0.7)
        return float(np.exp(step)), bool(bounded)

    def distance(self, other: Hyper) -> float:
        """Return the largest change of a mean or of the logarithm of an sd."""
        sds = ("diff_sd", "disc_sd")
        means = ("diff_mean", "disc_mean", "tilt")
        return max(
            *(abs(np.log(getattr(self, name) / getattr(other, name))) for name in sds),
            *(abs(getattr(self, name) - getattr(other, name)) for name in means),
        )

    def rescaled(self, prior: Prior, stretch: float, shift: float) -> Hyper:
        """Return the prior after theta -> (theta - shift) / stretch; given parts stay."""
        changes = {"tilt": self.tilt + float(np.log(stretch))}
        if prior.diff_sd is None and prior.diff_mean is None:
            changes["diff_mean"] = (self.diff_mean - shift) / stretch
            changes["diff_sd"] = self.diff_sd / stretch
            changes["centre"] = self.centre / stretch
        if not self.positive and prior.disc_sd is None and prior.disc_mean is None:
            changes["disc_mean"] = self.disc_mean * stretch
            changes["disc_sd"] = self.disc_sd * stretch
            changes["tilt"] = self.tilt
        return replace(self, **changes)


@dataclass(frozen=True)
class Prior:
    """Which parts of the prior are given; what is None is estimated.

    The hyperprior of an estimated sd is log-normal around 1.5 (difficulty, log sd 0.75) and 0.4
    (log discrimination, log sd 0.5) or 1 (signed discrimination, log sd 1).
    """

    diff_mean: float | None = None
    diff_sd: float | None = None
    disc_mean: float | None = None
    disc_sd: float | None = None

    def start(self, positive: bool) -> Hyper:
        """Return the first guess: what is given, and round values."""
        guess = Hyper() if positive else Hyper(disc_mean=1.0, disc_sd=0.6, positive=False)
        given = {name: value for name, value in vars(self).items() if value is not None}
        return replace(guess, **given)


SD_MAX = {"diff_sd": 4.0, "disc_sd": 1.0, "signed_sd": 4.0, "gap_sd": 2.0}
JUDGED_SD_MAX = 12.0  # of difficulty, under several judges
HYPERPRIOR = {
    "diff_sd": (np.log(1.5), 0.75),
    "disc_sd": (np.log(0.4), 0.5),
    "signed_sd": (0.0, 1.0),
    "gap_sd": (np.log(0.5), 0.5),  # log gaps between thresholds, graded models
}


@dataclass
class State:
    theta: np.ndarray
    severity: np.ndarray
    b: np.ndarray
    alpha: np.ndarray  # log a, or a for signed models; one number for 1PL

    def moved(self, step: State, size: float) -> State:
        return State(*(getattr(self, name) + size * getattr(step, name) for name in vars(self)))


@dataclass
class System:
    """One evaluation of the joint log posterior: its value, gradient and arrow-shaped Hessian."""

    objective: float
    log_likelihood: float
    gradient: State
    schur: np.ndarray
    right: np.ndarray
    ibb: np.ndarray
    iba: np.ndarray
    iaa: np.ndarray
    couplings: list  # per block: (start, stop, C_b, C_a), items x (subjects + judges)
    shared: tuple | None = None  # 1PL: (row of alpha with the kept part, with b, its diagonal)

    def gradient_norm(self) -> float:
        return max(float(np.abs(part).max(initial=0.0)) for part in vars(self.gradient).values())


def soft_end(a: np.ndarray, positive: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log density of the prior's soft end, and minus its two derivatives in alpha."""
    fourth = (a / DISC_END) ** 4
    if positive:
        return -0.25 * fourth, fourth, 4 * fourth
    return -0.25 * fourth, a**3 / DISC_END**4, 3 * a**2 / DISC_END**4


def runs_backwards(data: Scores, theta: np.ndarray) -> np.ndarray:
    """Say which items' likelihood has its maximum at a negative slope.

    The family is exponential, so the sign of the best slope is that of the covariance of the
    scores with ability.
    """
    out = np.zeros(data.n_items, bool)
    for block in data.blocks():
        ability = np.broadcast_to(block.of_subject(theta), block.x.shape)
        n = block.sum_item(np.ones_like(block.x))
        mean_x, mean_t = block.sum_item(block.x) / n, block.sum_item(ability) / n
        product = block.sum_item(block.x * ability) / n
        out[block.start : block.stop] = product - mean_x * mean_t < -1e-12
    return out


def turned(data: Scores, theta: np.ndarray, b: np.ndarray, alpha: np.ndarray, flat: np.ndarray):
    """Return signed items with the wrong ones turned, (b, a) to (-b, -a), and how many those are.

    An item has a mode on either side of a = 0, and no climb leads across: with -ab kept, b would
    pass through infinity. So a side that was chosen from rough abilities is to be chosen again.
    """
    wrong = ~flat & (runs_backwards(data, theta) != (alpha < 0))
    sign = np.where(wrong, -1.0, 1.0)
    return sign * b, sign * alpha, int(wrong.sum())


class Posterior:
    """The joint log posterior, evaluated block by block.

    Parameters
    ----------
    data : Scores
    likelihood : Likelihood
    shared : bool
        One discrimination for all items (1PL).
    positive : bool
        The discrimination is exp(alpha) rather than alpha.
    """

    def __init__(self, data: Scores, likelihood: Likelihood, *, shared: bool, positive: bool):
        self.data = data
        self.likelihood = likelihood
        self.shared = shared
        self.positive = positive
        self.n_kept = data.n_subjects + data.n_groups
        self.dtype = np.float32 if data.n_cells > _WIDE else np.float64
        low, high = data.per_item("min"), data.per_item("max")
        self.flat = ((high == 0) | (low == 1)) & (not shared)  # slopes that no score speaks of

    @property
    def sd_name(self) -> str:
        """Key of the hyperprior of the discrimination's sd."""
        return "disc_sd" if self.positive else "signed_sd"

    def disc(self, alpha: np.ndarray) -> np.ndarray:
        a = np.exp(alpha) if self.positive else alpha
        return np.broadcast_to(a, (self.data.n_items,)) if self.shared else a

    def start(self) -> State:
        data = self.data
        score = np.clip(data.per_subject("mean"), 0.02, 0.98)
        ease = np.clip(data.per_item("mean"), 0.05, 0.95)
        theta = score - score.mean()
        theta = theta / theta.std() if theta.std() > 0 else theta
        steep = 1.7 if self.likelihood.name == "cb" else 1.0
        b = -steep * np.log(ease / (1 - ease))
        b = b - b.mean()
        alpha = np.full(1 if self.shared else data.n_items, 0.0 if self.positive else 1.0)
        if not (self.positive or self.shared):
            sign = np.where(runs_backwards(data, theta), -1.0, 1.0)
            alpha, b = sign, sign * b
        return State(theta, np.zeros(data.n_groups), b, alpha)

    def prior_value(self, state: State, hyper: Hyper) -> float:
        value = -0.5 * (state.theta @ state.theta)
        value -= 0.5 * ((state.b - hyper.diff_mean - hyper.centre) ** 2).sum() / hyper.diff_sd**2
        value -= 0.5 * (state.severity @ state.severity) / hyper.severity_sd**2
        if not self.shared:
            centre, sd = hyper.disc_prior()
            value -= 0.5 * ((state.alpha - centre) ** 2).sum() / sd**2
            value += soft_end(self.disc(state.alpha), self.positive)[0].sum()
        return float(value)

    def value(self, state: State, hyper: Hyper) -> float:
        """Return the joint log posterior, up to a constant that depends on the prior's sds."""
        return self.log_likelihood(state) + self.prior_value(state, hyper)

    def log_likelihood(self, state: State) -> float:
        a = self.disc(state.alpha)
        total = 0.0
        for block in self.data.blocks():
            eta = block.of_item(a) * self._distance(block, state)
            total += float((block.x * eta).sum() - self.likelihood.terms(eta)[0].sum())
        return total

    def _distance(self, block, state: State) -> np.ndarray:
        distance = block.of_subject(state.theta) - block.of_item(state.b)
        if self.data.n_groups:
            distance -= state.severity[block.group]
        return distance

    def system(self, state: State, hyper: Hyper, *, observed: bool = True) -> System:
        """Evaluate value, gradient and Hessian; the expected Hessian where the observed fails."""
        data, n, k, m = self.data, self.data.n_subjects, self.data.n_groups, self.data.n_items
        a = self.disc(state.alpha)
        kept = self.n_kept
        if kept > DENSE_MAX:
            raise DataError(
                f"{kept:,} subjects and judges are more than the {DENSE_MAX:,} whose joint errors "
                "engine='map' can form",
                "use engine='em', which integrates the abilities out",
            )
        schur = np.zeros((kept, kept))
        diagonal = schur.reshape(-1)[:: kept + 1]
        diagonal[:n] += 1.0
        diagonal[n:] += hyper.severity_sd**-2
        g_kept = np.concatenate([-state.theta, -state.severity / hyper.severity_sd**2])
        g_b = -(state.b - hyper.diff_mean - hyper.centre) / hyper.diff_sd**2
        if self.shared:
            g_a = np.zeros(1)
        else:
            centre, sd = hyper.disc_prior()
            _, end_1, end_2 = soft_end(a, self.positive)
            g_a = -(state.alpha - centre) / sd**2 - end_1
        ibb, iba, iaa = np.zeros(m), np.zeros(m), np.zeros(m)
        right = np.zeros(kept)
        shared_kept, shared_b, shared_diagonal = np.zeros(kept), np.zeros(m), 0.0
        log_likelihood = 0.0
        couplings = []
        for block in data.blocks():
            part = slice(block.start, block.stop)
            a_block = a[part]
            slope = block.of_item(a)
            distance = self._distance(block, state)
            eta = slope * distance
            normalizer, mean, w = self.likelihood.terms(eta)
            log_likelihood += float((block.x * eta).sum() - normalizer.sum())
            r = block.x - mean
            r_item = block.sum_item(r)
            ar = slope * r
            g_kept[:n] += block.sum_subject(ar)
            g_b[part] -= a_block * r_item
            u = w * slope * slope
            u_item = block.sum_item(u)
            u_subject = block.sum_subject(u)
            diagonal[:n] += u_subject
            tangent = eta if self.positive else distance
            lift = slope if self.positive else 1.0
            if self.flat[part].any():
                tangent = tangent * block.of_item(~self.flat)
                lift = lift * block.of_item(~self.flat)
            s_rt = block.sum_item(r * tangent)
            wt = w * tangent
            z = block.sum_item(wt * tangent)
            v = wt * slope  # expected; the observed adds -r * lift
            v_item = block.sum_item(v)
            bb = u_item + hyper.diff_sd**-2
            if self.shared:
                g_a[0] += s_rt.sum()
                if observed:
                    v = v - r * lift
                    v_item = block.sum_item(v)
                    if self.positive:
                        z = z - s_rt
                shared_kept[:n] += block.sum_subject(v)
                shared_b[part] = -v_item
                shared_diagonal += z.sum()
                det = bb
                ibb[part] = 1 / bb
            else:
                g_a[part] += s_rt
                aa = z + sd**-2 + end_2[part]
                ba = -v_item
                if observed:
                    aa_full = aa - s_rt if self.positive else aa
                    turn = r_item * (a_block if self.positive else 1.0)
                    ba_full = ba + np.where(self.flat[part], 0.0, turn)
                    good = (aa_full > 0) & (bb * aa_full - ba_full**2 > 1e-3 * bb * aa)
                    aa = np.where(good, aa_full, aa)
                    ba = np.where(good, ba_full, ba)
                    if good.all():
                        v = v - r * lift
                    else:
                        full = np.zeros(m)
                        full[part] = good
                        v = v - r * lift * block.of_item(full)
                det = bb * aa - ba**2
                ibb[part], iba[part], iaa[part] = aa / det, -ba / det, bb / det
            c_b = np.empty((block.n_items, kept), self.dtype)
            c_b[:, :n] = block.matrix(-u, self.dtype)
            c_a = None
            if not self.shared:
                c_a = np.empty((block.n_items, kept), self.dtype)
                c_a[:, :n] = block.matrix(v, self.dtype)
            if k:
                g_kept[n:] -= block.sum_group(ar, k)
                diagonal[n:] += block.sum_group(u, k)
                cross = np.bincount(block.subject * k + block.group, u, n * k).reshape(n, k)
                schur[:n, n:] -= cross
                schur[n:, :n] -= cross.T
                cell = block.item * k + block.group
                c_b[:, n:] = np.bincount(cell, u, block.n_items * k).reshape(-1, k)
                if not self.shared:
                    c_a[:, n:] = -np.bincount(cell, v, block.n_items * k).reshape(-1, k)
                else:
                    shared_kept[n:] -= block.sum_group(v, k)
            couplings.append((block.start, block.stop, c_b, c_a))
        if not self.shared:
            g_a[self.flat] = 0.0
        for start, stop, c_b, c_a in couplings:
            part = slice(start, stop)
            if c_a is None:
                half = c_b * np.sqrt(ibb[part])[:, None].astype(self.dtype)
                schur -= half.T @ half
                right -= c_b.T @ (ibb[part] * g_b[part]).astype(self.dtype)
                continue
            # Cholesky of the inverse block: rows scaled so that one product does it
            l11 = np.sqrt(iaa[part])
            l21 = iba[part] / l11
            l22 = np.sqrt(np.maximum(ibb[part] - l21**2, 0))
            low = (l11[:, None] * c_a + l21[:, None] * c_b).astype(self.dtype, copy=False)
            schur -= low.T @ low
            low = (l22[:, None] * c_b).astype(self.dtype, copy=False)
            schur -= low.T @ low
            y_b = ibb[part] * g_b[part] + iba[part] * g_a[part]
            y_a = iba[part] * g_b[part] + iaa[part] * g_a[part]
            right -= y_b.astype(self.dtype) @ c_b + y_a.astype(self.dtype) @ c_a
        right += g_kept
        gradient = State(g_kept[:n], g_kept[n:], g_b, np.zeros(1) if self.shared else g_a)
        return System(
            log_likelihood + self.prior_value(state, hyper),
            log_likelihood,
            gradient,
            schur,
            right,
            ibb,
            iba,
            iaa,
            couplings,
            (shared_kept, shared_b, shared_diagonal) if self.shared else None,
        )

    def step(self, system: System) -> State | None:
        """Return Newton's step, or None if the Hessian is not positive definite."""
        try:
            kept = cho_solve(cho_factor(system.schur, check_finite=False), system.right)
        except np.linalg.LinAlgError:
            return None
        n, g = self.data.n_subjects, system.gradient
        short = kept.astype(self.dtype)
        u_b = g.b.copy()
        u_a = None if self.shared else g.alpha.copy()
        for start, stop, c_b, c_a in system.couplings:
            u_b[start:stop] -= c_b @ short
            if c_a is not None:
                u_a[start:stop] -= c_a @ short
        if self.shared:
            return State(kept[:n], kept[n:], system.ibb * u_b, np.zeros(1))
        return State(
            kept[:n],
            kept[n:],
            system.ibb * u_b + system.iba * u_a,
            system.iba * u_b + system.iaa * u_a,
        )


@dataclass
class Moments:
    """Posterior means and variances of the items given the abilities, by quadrature."""

    b: np.ndarray
    alpha: np.ndarray
    var_b: np.ndarray
    var_alpha: np.ndarray


@dataclass
class ItemNodes:
    """Nodes on which an item's posterior given the abilities is integrated.

    `slope`, like `alpha`, is alpha nodes x items; `b` and `log_prior`, with the weights of the
    quadrature, alpha nodes x b nodes x items.
    """

    alpha: np.ndarray
    slope: np.ndarray
    b: np.ndarray
    log_prior: np.ndarray


def item_nodes(
    posterior: Posterior, state: State, system: System, hyper: Hyper, nodes: int
) -> ItemNodes:
    """Place nodes by each item's mode and curvature."""
    b = state.b
    z, weight = np.polynomial.hermite_e.hermegauss(nodes)
    log_weight = np.log(weight) + 0.5 * z**2
    # A posterior is hardly wider than its prior, whatever the curvature at the mode says.
    s_a = np.sqrt(np.minimum(system.iaa, 1.5 * hyper.disc_prior()[1] ** 2))
    s_a[posterior.flat] = 0.0
    lean = np.divide(system.iba, s_a, out=np.zeros_like(s_a), where=s_a > 0)
    lean = np.clip(lean, -hyper.diff_sd, hyper.diff_sd)
    s_b = np.sqrt(np.clip(system.ibb - lean**2, 1e-12, 1.5 * hyper.diff_sd**2))
    told = np.maximum(s_b**-2 - hyper.diff_sd**-2, 0)
    if posterior.shared:
        z_a, log_weight_a = np.zeros(1), np.zeros(1)
    else:
        z_a, log_weight_a = z, log_weight
    centre = np.broadcast_to(state.alpha, b.shape)
    at_a = centre + z_a[:, None] * s_a  # alpha nodes x items
    slope = np.exp(at_a) if posterior.positive else at_a
    width = np.broadcast_to(s_b, at_a.shape)
    if posterior.positive:  # the flatter the curve, the less it says of b
        width = (told * np.exp(2 * z_a[:, None] * s_a) + hyper.diff_sd**-2) ** -0.5
    at_b = (b + z_a[:, None] * lean)[:, None] + z[:, None] * width[:, None]  # alpha x b x items
    prior = log_weight_a[:, None, None] + log_weight[:, None] + np.log(width)[:, None]
    prior = prior - 0.5 * ((at_b - hyper.diff_mean) / hyper.diff_sd) ** 2
    if not posterior.shared:
        prior = prior - 0.5 * ((at_a - hyper.disc_mean) / hyper.disc_sd)[:, None] ** 2
        prior = prior + soft_end(slope, posterior.positive)[0][:, None]
    return ItemNodes(at_a, slope, at_b, prior)


def item_moments(
    posterior: Posterior,
    state: State,
    system: System,
    hyper: Hyper,
    nodes: int = 5,
) -> Moments:
    """Integrate each item's posterior given theta, on nodes placed by its mode and curvature."""
    data = posterior.data
    few = data.per_item("count") <= QUADRATURE_MAX
    flat = posterior.flat
    b, var_b = state.b.copy(), system.ibb.copy()
    alpha = np.broadcast_to(state.alpha, (data.n_items,)).copy()
    var_alpha = system.iaa.copy()
    alpha[flat], var_alpha[flat] = hyper.disc_mean, hyper.disc_sd**2
    if not few.any():
        return Moments(b, alpha, var_b, var_alpha)
    grid = item_nodes(posterior, state, system, hyper, nodes)
    at_a, at_b, slope_at, logs = grid.alpha, grid.b, grid.slope, grid.log_prior
    slope_32, shift_32 = slope_at.astype(np.float32), (slope_at[:, None] * at_b).astype(np.float32)
    for block in data.blocks():
        part = slice(block.start, block.stop)
        if not few[part].any():
            continue
        ability = block.of_subject(state.theta)
        if data.n_groups:
            ability = ability - state.severity[block.group]
        ability = np.broadcast_to(ability, block.x.shape)
        x_ability, x_sum = block.sum_item(block.x * ability), block.sum_item(block.x)
        logs[..., part] += slope_at[:, None, part] * (x_ability - at_b[..., part] * x_sum)
        ability = ability.astype(np.float32)
        for i in range(len(at_a)):
            rise = block.of_item(slope_32[i]) * ability
            for j in range(nodes):
                eta = rise - block.of_item(shift_32[i, j])
                fall = posterior.likelihood.rough_log_normalizer(eta)
                logs[i, j, part] -= block.sum_item(fall)
    p = np.exp(logs - logs.max((0, 1)))
    p /= p.sum((0, 1))
    p_a = p.sum(1)
    mean_b, mean_a = (p * at_b).sum((0, 1)), (p_a * at_a).sum(0)
    b[few], var_b[few] = mean_b[few], (p * (at_b - mean_b) ** 2).sum((0, 1))[few]
    if not posterior.shared:
        few = few & ~flat
        alpha[few], var_alpha[few] = mean_a[few], (p_a * (at_a - mean_a) ** 2).sum(0)[few]
    return Moments(b, alpha, var_b, var_alpha)


def widened(posterior: Posterior, state: State, system: System, hyper: Hyper) -> System:
    """Return the system with the abilities' information taken over the items' whole posteriors.

    Laplace's method takes an item at its mode and its error from the curvature there; 20 scores
    leave more doubt than that, and abilities were given errors 2 to 4 % too small. Here each item
    is integrated out by quadrature, and the information is that of the marginal likelihood (Louis
    1982): the mean of what it would be, were the item known, less the covariance of its scores.
    Items with many scores, and the 1PL, are left to Laplace.
    """
    data, n, k = posterior.data, posterior.data.n_subjects, posterior.data.n_groups
    if posterior.shared or data.per_item("count").max() > QUADRATURE_MAX:
        return system
    grid = item_nodes(posterior, state, system, hyper, nodes=3)
    shape = grid.b.shape[:2]
    share = np.zeros(grid.b.shape)
    information = np.zeros_like(system.schur)
    diagonal = information.reshape(-1)[:: len(information) + 1]
    diagonal[:n] += 1.0
    diagonal[n:] += hyper.severity_sd**-2
    for block in data.blocks():
        ability = block.of_subject(state.theta)
        if k:
            ability = ability - state.severity[block.group]
        part = slice(block.start, block.stop)
        logs = grid.log_prior[..., part].copy()
        pull, told = np.empty((2, *shape, *block.x.shape))
        for node in np.ndindex(shape):
            a = block.of_item(grid.slope[node[0]])
            eta = a * (ability - block.of_item(grid.b[node]))
            normalizer, mean, w = posterior.likelihood.terms(eta)
            logs[node] += block.sum_item(block.x * eta - normalizer)
            pull[node], told[node] = a * (block.x - mean), a * a * w
        p = np.exp(logs - logs.max((0, 1)))
        share[..., part] = p / p.sum((0, 1))
        by_cell = np.array([[block.of_item(row) for row in rows] for rows in share])
        u = (by_cell * told).sum((0, 1))
        pull -= (by_cell * pull).sum((0, 1))
        pull *= np.sqrt(by_cell)
        diagonal[:n] += block.sum_subject(u)
        if k:
            diagonal[n:] += block.sum_group(u, k)
            cross = np.bincount(block.subject * k + block.group, u, n * k).reshape(n, k)
            information[:n, n:] -= cross
            information[n:, :n] -= cross.T
        low = np.empty((block.n_items, n + k))
        for node in np.ndindex(shape):
            low[:, :n] = block.matrix(pull[node])
            if k:
                cell = block.item * k + block.group
                low[:, n:] = -np.bincount(cell, pull[node], block.n_items * k).reshape(-1, k)
            information -= low.T @ low
    try:
        cho_factor(information, check_finite=False)
    except np.linalg.LinAlgError:
        return system
    return replace(system, schur=information)


def shrunk_sd(mean_square: float, count: int, name: str, most: float | None = None) -> float:
    """Return the sd that maximises its posterior under the log-normal hyperprior, up to `most`."""
    centre, spread = HYPERPRIOR[name]
    log_sd = 0.5 * np.log(max(mean_square, 1e-8))
    for _ in range(50):
        ratio = count * mean_square * np.exp(-2 * log_sd)
        slope = -count + ratio - (log_sd - centre) / spread**2
        move = slope / (2 * ratio + spread**-2)
        log_sd += np.clip(move, -1, 1)
        if abs(move) < 1e-10:
            break
    return min(float(np.exp(log_sd)), most or SD_MAX[name])


@dataclass
class MapFit:
    """What the engine found: the mode, the item moments, variances and how it went."""

    state: State
    moments: Moments
    hyper: Hyper
    system: System
    var_theta: np.ndarray
    var_severity: np.ndarray
    var_b: np.ndarray
    var_alpha: np.ndarray
    converged: bool
    iterations: int
    gradient_norm: float
    objective: float
    bounded: bool


def newton(
    posterior: Posterior, state: State, hyper: Hyper, *, tol: float = 1e-8, max_iter: int = 100
) -> tuple[State, System, int]:
    """Climb to the mode for a fixed prior; stop when no gradient entry exceeds `tol`."""
    system = posterior.system(state, hyper)
    for iteration in range(max_iter):
        if system.gradient_norm() <= tol:
            return state, system, iteration
        state, system, moved = advance(posterior, state, system, hyper)
        if not moved:
            return state, system, iteration + 1
    return state, system, max_iter


def advance(
    posterior: Posterior, state: State, system: System, hyper: Hyper
) -> tuple[State, System, bool]:
    """Take one damped Newton step."""
    step = posterior.step(system)
    if step is None:
        system = posterior.system(state, hyper, observed=False)
        step = posterior.step(system)
        if step is None:
            raise DataError("the scores do not determine the model: the Hessian is singular")
    longest = max(
        np.abs(step.theta).max() / 2,
        np.abs(step.b).max() / 3,
        np.abs(step.alpha).max(initial=0),
        np.abs(step.severity).max(initial=0) / 2,
    )
    size = min(1.0, 1.0 / longest) if longest > 0 else 1.0
    slack = 1e-12 * abs(system.objective) + 1e-10
    for _ in range(30):
        trial = state.moved(step, size)
        new = posterior.system(trial, hyper)
        if new.objective >= system.objective - slack:
            return trial, new, True
        size *= 0.5
    return state, system, False


def fit_map(
    data: Scores,
    likelihood: Likelihood,
    *,
    shared: bool,
    positive: bool,
    prior: Prior,
    scale: str = "sample",
    tol: float = 1e-8,
    max_iter: int = 200,
    start: State | None = None,
    start_hyper: Hyper | None = None,
) -> MapFit:
    """Fit by the module's four points; `tol` bounds every entry of the gradient."""
    posterior = Posterior(data, likelihood, shared=shared, positive=positive)
    hyper = start_hyper or prior.start(positive)
    state = start or posterior.start()
    state.alpha[posterior.flat[: len(state.alpha)]] = hyper.disc_prior()[0]
    system = posterior.system(state, hyper, observed=False)
    tuner = _Tuner(posterior, prior)
    settled, iterations = False, 0
    while iterations < max_iter and not settled:
        state, system, moved = advance(posterior, state, system, hyper)
        iterations += 1
        if system.gradient_norm() > 0.05 * max(1.0, np.sqrt(data.n_cells / data.n_items)) and moved:
            continue
        if tuner.rounds < _TURNS and not (positive or shared):
            b, alpha, count = turned(data, state.theta, state.b, state.alpha, posterior.flat)
            if count:
                tuner.rounds += 1
                state = replace(state, b=b, alpha=alpha)
                system = posterior.system(state, hyper)
                continue
        state, hyper = tuner.update(state, system, hyper)
        tuner.rounds += 1
        settled = tuner.change < HYPER_TOL or tuner.rounds == HYPER_ROUNDS
        system = posterior.system(state, hyper)
    state, system, more = newton(posterior, state, hyper, tol=tol, max_iter=max_iter)
    iterations += more
    state = _oriented(data, state)
    system, _ = inverted(posterior, state, posterior.system(state, hyper), hyper)
    norm = system.gradient_norm()
    moments = item_moments(posterior, state, system, hyper)
    whole = widened(posterior, state, system, hyper)
    variances = standard_errors(posterior, state, whole, moments, scale)
    return MapFit(
        state,
        moments,
        hyper,
        system,
        *variances,
        converged=bool(tuner.change < 10 * HYPER_TOL and norm <= max(tol, 1e-6)),
        iterations=iterations,
        gradient_norm=norm,
        objective=system.objective,
        bounded=tuner.bounded,
    )


def _oriented(data: Scores, state: State) -> State:
    score = data.per_subject("mean")
    if np.sum((state.theta - state.theta.mean()) * (score - score.mean())) >= 0:
        return state
    return State(-state.theta, -state.severity, -state.b, -state.alpha)


class _Tuner:
    """Empirical-Bayes updates of the prior, between Newton steps."""

    def __init__(self, posterior: Posterior, prior: Prior):
        self.posterior = posterior
        self.prior = prior
        self.diff_sd_max = JUDGED_SD_MAX if posterior.data.n_groups > 1 else SD_MAX["diff_sd"]
        self.change = np.inf  # of the last update
        self.rounds = 0
        self.bounded = False
        self.shift: tuple[np.ndarray, ...] = ()  # item moments: quadrature minus Laplace

    def update(self, state: State, system: System, hyper: Hyper) -> tuple[State, Hyper]:
        """Return the prior that the items ask for, and the state on its scale."""
        posterior = self.posterior
        system, inverse = inverted(posterior, state, system, hyper)
        n = posterior.data.n_subjects
        if self.change > 0.02:
            moments = item_moments(posterior, state, system, hyper)
            self.shift = (
                moments.b - state.b,
                moments.alpha - state.alpha,
                moments.var_b - system.ibb,
                moments.var_alpha - system.iaa,
            )
        new = self._hypers(state, system, hyper, carried(posterior, system, inverse))
        stretch = float(np.sqrt(np.mean(state.theta**2 + np.diag(inverse)[:n])))
        typical = float(state.alpha[0]) if posterior.shared else None
        stretch, self.bounded = new.allowed(stretch, typical)
        shift = 0.0
        if self.prior.diff_sd is None and self.prior.diff_mean is None:
            shift = float(state.theta.mean())
        new = new.rescaled(self.prior, stretch, shift)
        alpha = state.alpha + np.log(stretch) if posterior.positive else state.alpha * stretch
        alpha[posterior.flat[: len(alpha)]] = new.disc_prior()[0]
        theta, b = (state.theta - shift) / stretch, (state.b - shift) / stretch
        severity = state.severity / stretch
        if len(severity) and self.prior.diff_mean is None:
            middle = float(severity.mean())
            severity, b = severity - middle, b + middle
            new = replace(new, diff_mean=new.diff_mean + middle)
        self.change = new.distance(hyper)
        return State(theta, severity, b, alpha), new

    def _hypers(self, state: State, system: System, hyper: Hyper, carried_by_theta) -> Hyper:
        """Maximise over the prior, with the items' likelihoods taken as Gaussian at the mode."""
        posterior, m = self.posterior, self.posterior.data.n_items
        shift_b, shift_a, shift_vb, shift_va = self.shift
        carried_b, carried_a = carried_by_theta
        pbb, pba, paa = _inverted(system.ibb, system.iba, system.iaa, posterior.shared)
        alpha = np.broadcast_to(state.alpha, (m,))
        old_a, old_sd = hyper.disc_prior()
        old_b = hyper.diff_mean + hyper.centre
        current = hyper
        for _ in range(8):
            new_a, new_sd = current.disc_prior()
            right_b = (current.diff_mean + current.centre - state.b) * current.diff_sd**-2
            right_b -= (old_b - state.b) * hyper.diff_sd**-2
            bb = pbb + current.diff_sd**-2 - hyper.diff_sd**-2
            if posterior.shared:
                mode_b, mode_a, var_b, var_a = state.b + right_b / bb, alpha, 1 / bb, paa
            else:
                right_a = (new_a - alpha) * new_sd**-2 - (old_a - alpha) * old_sd**-2
                aa = paa + new_sd**-2 - old_sd**-2
                det = np.maximum(bb * aa - pba**2, 1e-3 * bb * aa)
                var_b, var_a = aa / det, bb / det
                mode_b = state.b + (aa * right_b - pba * right_a) / det
                mode_a = alpha + (bb * right_a - pba * right_b) / det
            var_b = np.maximum(var_b + shift_vb, 0.1 * var_b) + carried_b
            var_a = np.maximum(var_a + shift_va, 0.1 * var_a) + carried_a
            new = self._maximised(current, mode_b, mode_b + shift_b, var_b, mode_a + shift_a, var_a)
            # trust the Gaussian only so far
            sd = float(np.clip(new.diff_sd, hyper.diff_sd / 1.4, hyper.diff_sd * 1.4))
            new = replace(new, diff_sd=sd)
            if not posterior.shared:
                sd = float(np.clip(new.disc_sd, hyper.disc_sd / 1.4, hyper.disc_sd * 1.4))
                new = new.with_disc(new.disc_mean, sd)
            change = abs(new.diff_sd / current.diff_sd - 1) + abs(new.disc_sd / current.disc_sd - 1)
            current = new
            if change < 0.1 * HYPER_TOL:
                break
        return current

    def _maximised(self, hyper, *moments) -> Hyper:
        telling = ~self.posterior.flat
        if telling.sum() < 2:
            return hyper
        mode_b, mean_b, var_b, mean_a, var_a = (values[telling] for values in moments)
        prior, m = self.prior, len(mean_b)
        changes = {}
        if prior.diff_mean is None:
            changes["diff_mean"] = float(mean_b.mean())
            changes["centre"] = float(mode_b.mean() - mean_b.mean())
        centre = changes.get("diff_mean", hyper.diff_mean)
        if prior.diff_sd is None:
            square = float(np.mean((mean_b - centre) ** 2 + var_b))
            changes["diff_sd"] = shrunk_sd(square, m, "diff_sd", self.diff_sd_max)
        new = replace(hyper, **changes)
        if self.posterior.shared:
            return new
        mean, sd = hyper.disc_mean, hyper.disc_sd
        if prior.disc_mean is None:
            mean = float(mean_a.mean())
        if prior.disc_sd is None:
            square = float(np.mean((mean_a - mean) ** 2 + var_a))
            sd = shrunk_sd(square, m, self.posterior.sd_name)
        return new.with_disc(mean, sd)


def inverted(
    posterior: Posterior, state: State, system: System, hyper: Hyper
) -> tuple[System, np.ndarray]:
    """Return the kept part's covariance, from the expected Hessian if the observed is no use."""
    for observed in (True, False):
        if not observed:
            system = posterior.system(state, hyper, observed=False)
        try:
            factor = cho_factor(system.schur, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        return system, cho_solve(factor, np.eye(len(system.schur)))
    raise DataError("the scores do not determine the model: the Hessian is singular")


def _inverted(ibb, iba, iaa, shared: bool):
    if shared:
        return 1 / ibb, np.zeros_like(ibb), np.zeros_like(ibb)
    det = ibb * iaa - iba**2
    return iaa / det, -iba / det, ibb / det


def carried(
    posterior: Posterior, system: System, inverse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the part of each item's variance that comes from the error of the abilities."""
    m = posterior.data.n_items
    from_b, from_a = np.zeros(m), np.zeros(m)
    inverse = inverse.astype(posterior.dtype, copy=False)
    for start, stop, c_b, c_a in system.couplings:
        part = slice(start, stop)
        for rows, target in _loadings(system, part, c_b, c_a, (from_b, from_a)):
            target[part] = np.einsum("jg,jg->j", rows @ inverse, rows)
    return from_b, from_a


def _loadings(system: System, part: slice, c_b, c_a, targets):
    """Yield items x kept matrices M: an item's mode moves by -M times a move of the kept part."""
    if c_a is None:
        yield system.ibb[part][:, None].astype(c_b.dtype) * c_b, targets[0]
        return
    ibb, iba, iaa = (
        getattr(system, name)[part][:, None].astype(c_b.dtype) for name in ("ibb", "iba", "iaa")
    )
    yield ibb * c_b + iba * c_a, targets[0]
    yield iba * c_b + iaa * c_a, targets[1]


def standard_errors(
    posterior: Posterior, state: State, system: System, moments: Moments, scale: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the variances of theta, severity, b and alpha (point 4 of the module).

    With x the parameters, g_1 and g_2 the directions along which location and scale move them,
    and m, l the mean and log sd of theta, the variance on the sample's scale is that of
    x - g_1 m - g_2 l; on the population's, g_1^2 / N + g_2^2 / (2 N) is added. Severities are
    taken from their mean in the same way.
    """
    data, n, m = posterior.data, posterior.data.n_subjects, posterior.data.n_items
    schur = system.schur
    c_shared = None
    if posterior.shared:  # the common discrimination joins the kept part
        row, with_b, corner = system.shared
        reduced = row - sum(
            c_b.T @ (system.ibb[start:stop] * with_b[start:stop])
            for start, stop, c_b, _ in system.couplings
        )
        corner = corner - np.sum(system.ibb * with_b**2)
        schur = np.block([[schur, reduced[:, None]], [reduced[None, :], np.array([[corner]])]])
        if corner <= 0:
            schur[-1, -1] = 1.0 + abs(corner)
        c_shared = with_b
        # Along the scale direction the prior of theta and b says little, so hold it softly.
        schur[-1, -1] += 4.0
    try:
        inverse = np.linalg.inv(schur)
    except np.linalg.LinAlgError:
        raise DataError("the scores do not determine the model: the Hessian is singular") from None
    theta = state.theta
    rho = max(float(np.mean(theta**2)), 1e-12)
    k = n + data.n_groups
    middle = float(state.severity.mean()) if data.n_groups else 0.0
    # rows: mean and log sd of theta, mean severity
    to = np.zeros((3, len(schur)))
    to[0, :n] = 1 / n
    to[1, :n] = (theta - theta.mean()) / (n * rho)
    to[2, n:k] = 1 / max(data.n_groups, 1)
    q = to @ inverse
    between = q @ to.T

    def projected(variance, shared_with, *along):
        along = [np.asarray(g, float) for g in along]
        out = variance - 2 * sum(g * c for g, c in zip(along, shared_with, strict=True))
        for i, g in enumerate(along):
            for j, h in enumerate(along):
                out = out + g * h * between[i, j]
        out = np.maximum(out, 1e-3 * variance)
        if scale == "population":
            out = out + along[0] ** 2 / n + along[1] ** 2 / (2 * n)
        return out

    diagonal = np.diag(inverse)
    var_theta = projected(diagonal[:n], q[:, :n], 1.0, theta, 0.0)
    var_severity = projected(diagonal[n:k], q[:, n:k], 0.0, state.severity - middle, 1.0)
    var_b, var_alpha = np.zeros(m), np.zeros(m)
    short, short_q = (x.astype(posterior.dtype, copy=False) for x in (inverse, q))
    g_alpha = np.full(m, -1.0) if posterior.positive else -np.broadcast_to(state.alpha, (m,))
    for start, stop, c_b, c_a in system.couplings:
        part = slice(start, stop)
        if c_shared is not None:
            c_b = np.column_stack([c_b, c_shared[part]])
        for rows, target in _loadings(system, part, c_b, c_a, (var_b, var_alpha)):
            spread = np.einsum("jg,jg->j", rows @ short, rows).astype(float)
            if target is var_b:
                own, along = moments.var_b[part], (1.0, state.b[part] + middle, -1.0)
            else:
                own, along = moments.var_alpha[part], (0.0, g_alpha[part], 0.0)
            target[part] = projected(spread + own, -(short_q @ rows.T), *along)
    if posterior.shared:
        var_alpha[:] = projected(diagonal[-1], q[:, -1], 0.0, g_alpha[0], 0.0)
    return var_theta, var_severity, var_b, var_alpha
