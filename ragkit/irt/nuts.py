"""The reference engine: the full posterior by NUTS, in Pyro.

The prior's means and sds are sampled too:

    mu_b ~ N(0, 5^2),  log sigma_b ~ N(log 1.5, 0.75^2)
    mu_a ~ N(0, 2^2),  log sigma_a ~ N(log 0.4, 0.5^2), signed N(0, 1)      1PL: log a ~ N(0, 2^2)

The log posterior and its gradient are those of the default engine, not torch's continuous
Bernoulli, whose gradient saturates. The sampler moves in coordinates whitened by the arrow-shaped
Hessian at the mode, so that a few leapfrog steps make a draw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ragkit.irt.data import Scores
from ragkit.irt.likelihood import Likelihood
from ragkit.irt.map import HYPERPRIOR, Hyper, MapFit, Posterior, Prior, State, fit_map, soft_end

_MEAN_SD = {"diff": 5.0, "disc": 2.0}


@dataclass
class Draws:
    """Posterior draws; arrays of chains x draws x parameters."""

    theta: np.ndarray
    severity: np.ndarray
    b: np.ndarray
    alpha: np.ndarray
    hyper: np.ndarray  # mu_b, sigma_b, mu_a, sigma_a; without the last two for 1PL
    divergences: int
    steps: float
    mode: MapFit


class Target:
    """Log posterior of all parameters and hyperparameters in whitened coordinates.

    The kept part is (theta, severity, mu_b, log sigma_b, mu_a, log sigma_a), or for 1PL (theta,
    severity, mu_b, log sigma_b, alpha); the items follow.
    """

    def __init__(self, posterior: Posterior, mode: MapFit):
        self.posterior = posterior
        data = posterior.data
        self.n, self.k, self.m = data.n_subjects, data.n_groups, data.n_items
        shared = posterior.shared
        self.extra = 3 if shared else 4
        self.kept = self.n + self.k + self.extra
        self.size = self.kept + self.m * (1 if shared else 2)
        hyper, state, system = mode.hyper, mode.state, mode.system
        first = self.n + self.k
        tail = [hyper.diff_mean + hyper.centre, np.log(hyper.diff_sd)]
        if shared:
            tail += [state.alpha[0]]
        else:
            centre, sd = hyper.disc_prior()
            tail += [centre, np.log(sd)]
        self.origin = np.concatenate(
            [state.theta, state.severity, tail, state.b, [] if shared else state.alpha]
        )
        c_b = np.zeros((self.m, self.kept))
        c_a = np.zeros((self.m, self.kept))
        for start, stop, part_b, part_a in system.couplings:
            c_b[start:stop, :first] = part_b
            if part_a is not None:
                c_a[start:stop, :first] = part_a
        curvature = np.zeros((self.kept, self.kept))
        own = system.schur.copy()
        for start, stop, part_b, part_a in system.couplings:  # undo the elimination
            part = slice(start, stop)
            load = system.ibb[part, None] * part_b
            if part_a is not None:
                load = load + system.iba[part, None] * part_a
                own += part_a.T @ (
                    system.iba[part, None] * part_b + system.iaa[part, None] * part_a
                )
            own += part_b.T @ load
        curvature[:first, :first] = own
        c_b[:, first] = -(hyper.diff_sd**-2)
        curvature[first, first] = self.m * hyper.diff_sd**-2 + _MEAN_SD["diff"] ** -2
        curvature[first + 1, first + 1] = self.m + HYPERPRIOR["diff_sd"][1] ** -2
        if shared:
            row, with_b, corner = system.shared
            curvature[first + 2, :first] = curvature[:first, first + 2] = row
            c_b[:, first + 2] = with_b
            curvature[first + 2, first + 2] = corner + _MEAN_SD["disc"] ** -2
        else:
            c_a[:, first + 2] = -(sd**-2)
            curvature[first + 2, first + 2] = self.m * sd**-2 + _MEAN_SD["disc"] ** -2
            curvature[first + 3, first + 3] = self.m + HYPERPRIOR[posterior.sd_name][1] ** -2
        self.load_b = system.ibb[:, None] * c_b + system.iba[:, None] * c_a
        self.load_a = system.iba[:, None] * c_b + system.iaa[:, None] * c_a
        schur = curvature - c_b.T @ self.load_b - c_a.T @ self.load_a
        low, vectors = np.linalg.eigh(schur)
        schur = (vectors * np.maximum(low, 1e-2 * np.median(low))) @ vectors.T
        self.factor = cholesky(schur, lower=True)
        # items: y = B^(-1/2) u with a lower-triangular root, alpha first
        self.r_aa = np.sqrt(system.iaa)
        self.r_ba = np.divide(system.iba, self.r_aa, out=np.zeros(self.m), where=self.r_aa > 0)
        self.r_bb = np.sqrt(np.maximum(system.ibb - self.r_ba**2, 1e-12))

    def position(self, u: np.ndarray) -> np.ndarray:
        """Return the parameters at the whitened point `u`."""
        x = np.empty(self.size)
        kept = solve_triangular(self.factor, u[: self.kept], lower=True, trans="T")
        x[: self.kept] = kept
        u_b = u[self.kept : self.kept + self.m]
        y_b = self.r_bb * u_b - self.load_b @ kept
        if not self.posterior.shared:
            u_a = u[self.kept + self.m :]
            y_b += self.r_ba * u_a
            x[self.kept + self.m :] = self.r_aa * u_a - self.load_a @ kept
        x[self.kept : self.kept + self.m] = y_b
        return x + self.origin

    def pull(self, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient in whitened coordinates."""
        out = np.empty(self.size)
        g_b = gradient[self.kept : self.kept + self.m]
        kept = gradient[: self.kept] - g_b @ self.load_b
        out[self.kept : self.kept + self.m] = self.r_bb * g_b
        if not self.posterior.shared:
            g_a = gradient[self.kept + self.m :]
            kept -= g_a @ self.load_a
            out[self.kept + self.m :] = self.r_aa * g_a + self.r_ba * g_b
        out[: self.kept] = solve_triangular(self.factor, kept, lower=True)
        return out

    def split(self, x: np.ndarray) -> tuple[State, np.ndarray]:
        first = self.n + self.k
        extra = x[first : self.kept]
        alpha = extra[2:3] if self.posterior.shared else x[self.kept + self.m :]
        b = x[self.kept : self.kept + self.m]
        return State(x[: self.n], x[self.n : first], b, alpha), extra

    def log_density(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log posterior at the parameters `x`, up to a constant, and its gradient."""
        posterior = self.posterior
        state, extra = self.split(x)
        a = posterior.disc(state.alpha)
        g_theta, g_severity = -state.theta, -state.severity / Hyper().severity_sd ** 2
        value = -0.5 * (state.theta @ state.theta + state.severity @ -g_severity)
        g_b, g_a = np.zeros(self.m), np.zeros(self.m)
        for block in posterior.data.blocks():
            part = slice(block.start, block.stop)
            slope = block.of_item(a)
            distance = posterior._distance(block, state)
            eta = slope * distance
            normalizer, mean, _ = posterior.likelihood.terms(eta)
            value += float((block.x * eta).sum() - normalizer.sum())
            r = block.x - mean
            ar = slope * r
            g_theta = g_theta + block.sum_subject(ar)
            if self.k:
                g_severity = g_severity - block.sum_group(ar, self.k)
            g_b[part] -= block.sum_item(ar)
            g_a[part] += block.sum_item(r * (eta if posterior.positive else distance))
        g_extra = np.zeros(self.extra)
        value += self._prior(state.b, extra, 0, "diff", "diff_sd", g_b, g_extra)
        if posterior.shared:
            value -= 0.5 * extra[2] ** 2 / _MEAN_SD["disc"] ** 2
            g_extra[2] = g_a.sum() - extra[2] / _MEAN_SD["disc"] ** 2
            tail = [g_b]
        else:
            value += self._prior(state.alpha, extra, 2, "disc", posterior.sd_name, g_a, g_extra)
            end, slope, _ = soft_end(a, posterior.positive)
            value += float(end.sum())
            g_a -= slope
            tail = [g_b, g_a]
        return value, np.concatenate([g_theta, g_severity, g_extra, *tail])

    @staticmethod
    def _prior(values, extra, at: int, name: str, sd_name: str, gradient, g_extra) -> float:
        """Return one hierarchical prior's log density; add its gradient in place."""
        mean, log_sd = extra[at], extra[at + 1]
        centre, spread = HYPERPRIOR[sd_name]
        z = (values - mean) * np.exp(-log_sd)
        gradient -= z * np.exp(-log_sd)
        g_extra[at] = z.sum() * np.exp(-log_sd) - mean / _MEAN_SD[name] ** 2
        g_extra[at + 1] = z @ z - len(z) - (log_sd - centre) / spread**2
        return float(
            -0.5 * (z @ z)
            - len(z) * log_sd
            - 0.5 * (mean / _MEAN_SD[name]) ** 2
            - 0.5 * ((log_sd - centre) / spread) ** 2
        )


def sample(
    data: Scores,
    likelihood: Likelihood,
    *,
    shared: bool,
    positive: bool,
    draws: int = 500,
    warmup: int = 300,
    chains: int = 2,
    seed: int = 0,
    progress: bool = True,
) -> Draws:
    """Draw from the posterior; every chain starts at an overdispersed point around the mode."""
    import pyro
    import torch
    from pyro.infer.mcmc import MCMC, NUTS

    mode = fit_map(data, likelihood, shared=shared, positive=positive, prior=Prior())
    posterior = Posterior(data, likelihood, shared=shared, positive=positive)
    target = Target(posterior, mode)

    class Potential(torch.autograd.Function):
        @staticmethod
        def forward(ctx, u):
            with np.errstate(over="ignore", invalid="ignore"):
                value, gradient = target.log_density(target.position(u.numpy()))
            if not (np.isfinite(value) and np.isfinite(gradient).all()):
                # a step into nowhere, which the sampler rejects and counts
                value, gradient = -np.inf, np.zeros(target.size)
            ctx.save_for_backward(torch.from_numpy(target.pull(gradient)))
            return torch.tensor(-value, dtype=torch.float64)

        @staticmethod
        def backward(ctx, upstream):
            (gradient,) = ctx.saved_tensors
            return -upstream * gradient

    threads = torch.get_num_threads()
    kept, divergences, steps = [], 0, 0
    try:
        torch.set_num_threads(1)
        for chain in range(chains):
            pyro.set_rng_seed(seed * 1000 + chain)
            rng = np.random.default_rng([seed, chain])
            start = torch.from_numpy(rng.normal(size=target.size))
            kernel = NUTS(
                potential_fn=lambda values: Potential.apply(values["u"]),
                target_accept_prob=0.8,
                max_tree_depth=8,
            )
            mcmc = MCMC(
                kernel,
                num_samples=draws,
                warmup_steps=warmup,
                initial_params={"u": start},
                disable_progbar=not progress,
            )
            mcmc.run()
            kept.append([target.position(u) for u in mcmc.get_samples()["u"].numpy()])
            divergences += len(mcmc.diagnostics()["divergences"]["chain 0"])
    finally:
        torch.set_num_threads(threads)
    x = np.array(kept)
    first = target.n + target.k
    hyper = x[..., first : target.kept].copy()
    hyper[..., 1::2] = np.exp(hyper[..., 1::2])
    alpha = x[..., target.kept + target.m :]
    if shared:
        alpha = hyper[..., 2:3].copy()
        hyper = hyper[..., :2]
    return Draws(
        x[..., : target.n],
        x[..., target.n : first],
        x[..., target.kept : target.kept + target.m],
        alpha,
        hyper,
        divergences,
        steps,
        mode,
    )
