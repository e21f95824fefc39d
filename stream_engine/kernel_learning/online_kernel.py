"""A kernel that follows the stream between snapshots: factored stochastic updates of RCKL, mini-batch by mini-batch.

K'' = L L' + sum_a nu_a^2 K_a is PSD whatever L (n, r) and nu are, so no projection is ever needed (after Heim et al.
2015b, "Efficient online relative comparison kernel learning"; the factored form is Burer & Monteiro's). Each triplet
takes a step on loss(x_t) + lambda1 tr L L' + lambda2 sum nu^2 with AdaGrad lengths a row; a reservoir (a uniform sample
of the stream) is replayed beside it. The lambdas are *per triplet*: the batch problem's divided by its number of
triplets. Where none are given they are the size of the noise: with answers that say nothing, the gradient at K = 0 of m
triplets over n objects has norm about sqrt(3 m / n) for K0, and for mu_a about half a mean distance times sqrt(m);
anything that explains less than that is left at 0. O(r + A) a triplet. Not convex and not certified: an observer,
like progressive validation. A crash may lose it, never a count; the batch refit is the answer that is kept.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.state.artifact_schemas import ONLINE_KERNEL
from stream_engine.statistics.embedding import squared_distances

KIND = "online_kernel"  # of the artifacts that hold what it knows
AXES = ONLINE_KERNEL.axes
STE, HINGE = 0, 1


class OnlineKernel:
    """State: L, nu, AdaGrad sums, the reservoir. Same triplets in the same blocks and same seed: same state."""

    def __init__(
        self,
        n: int,
        rank: int = 20,
        kernels: Sequence[np.ndarray] = (),
        *,
        loss: str = "ste",
        lambda1: float | None = None,
        lambda2: float | None = None,
        rate: float = 0.1,
        memory: int = 50_000,
        replays: int = 16,
        seed: int = 0,
    ):
        self.loss, self.lambda1, self.lambda2 = {"ste": STE, "hinge": HINGE}[loss], lambda1, lambda2
        self.rate, self.replays, self.seen = rate, replays, 0
        self._kept = self._lost = 0  # triplets that the reservoir was shown; those before it began
        self._rng = np.random.default_rng(seed)
        self._reservoir = np.empty((memory, 3), np.int32)
        self.factor, self._row_sums = np.empty((0, rank)), np.empty(0)
        self.nu, self._nu_sums = np.full(len(kernels), 0.1), np.zeros(len(kernels))
        self._distances, self._unit = np.empty((len(kernels), 0, 0)), np.ones(len(kernels))
        self.grow(n, kernels)

    def grow(self, n: int, kernels: Sequence[np.ndarray] = ()) -> None:
        """Make room for objects up to n - 1; `kernels` (n, n) over all of them, as many as at the start. O(A n^2)."""
        if len(kernels) != len(self.nu):
            raise ValueError(
                f"OnlineKernel.grow: got {len(kernels)} kernels, expected {len(self.nu)}, over all {n} objects"
            )
        more = n - len(self.factor)
        rank = self.factor.shape[1]
        self.factor = np.concatenate([self.factor, self._rng.normal(0, 0.3 / np.sqrt(rank), (more, rank))])
        self._row_sums = np.concatenate([self._row_sums, np.zeros(more)])
        if len(kernels):
            mu = self.mu
            d = np.stack([squared_distances(np.asarray(k, float)) for k in kernels])
            self._unit = np.maximum(d.mean(axis=(1, 2)), 1e-300)  # nu works in units where a mean distance is 1
            self._distances = d / self._unit[:, None, None]
            self.nu = np.sqrt(mu * self._unit) if self.seen else self.nu

    def start(self, k0: np.ndarray, mu: np.ndarray) -> None:
        """Go on from a batch answer over the first len(k0) objects: its best rank-r part and its weights. O(n^3)."""
        values, vectors = np.linalg.eigh(k0)
        top = slice(None, -self.factor.shape[1] - 1, -1)
        part = vectors[:, top] * np.sqrt(np.maximum(values[top], 0.0))
        self.factor[: len(k0)] = 0.0
        self.factor[: len(k0), : part.shape[1]] = part
        self.nu = np.sqrt(np.asarray(mu, float) * self._unit)

    def learn(self, triplets: np.ndarray, steps: int | None = None) -> None:
        """One block of (m, 3) triplets: a step on each, and `replays` steps a triplet on the reservoir. With `steps`
        there are so many instead; fewer than 2 m are half on a sample of the block, half replays. O(steps (r + A) +
        m)."""
        triplets = np.ascontiguousarray(triplets, dtype=np.int32)
        m = len(triplets)
        before, self.seen = self.seen, self.seen + m
        steps = m * (1 + self.replays) if steps is None else steps
        fresh = min(m, steps) if self.replays == 0 else min(m, (steps + 1) // 2)
        self._steps(triplets if fresh == m else triplets[np.arange(fresh) * m // fresh] if fresh else triplets[:0])
        self._remember(triplets, before)
        held = min(self._kept, len(self._reservoir))
        if held and steps > fresh:
            self._steps(self._reservoir[self._rng.integers(held, size=steps - fresh)])

    def _steps(self, triplets: np.ndarray) -> None:
        n = max(len(self.factor), 1)
        _descend(
            triplets,
            self.factor,
            self._row_sums,
            self.nu,
            self._nu_sums,
            self._distances,
            self.loss,
            self.rate,
            (self.lambda1 if self.lambda1 is not None else np.sqrt(3.0 / (n * max(self.seen, 1)))) * n / 3.0,
            self.lambda2 if self.lambda2 is not None else 0.5 / np.sqrt(max(self.seen, 1)),
            1.0 / self._unit if self.lambda2 is not None else np.ones(len(self._unit)),
        )

    def _remember(self, triplets: np.ndarray, before: int) -> None:
        """Vitter's algorithm R: every triplet so far is in the reservoir with equal probability."""
        room = len(self._reservoir)
        before, self._kept = before - self._lost, self._kept + len(triplets)
        fits = max(0, min(room - before, len(triplets)))
        self._reservoir[before : before + fits] = triplets[:fits]
        rest = np.arange(fits, len(triplets))
        at = self._rng.integers(0, before + rest + 1) if len(rest) else rest
        self._reservoir[at[at < room]] = triplets[rest[at < room]]

    def sums(self) -> dict[str, np.ndarray]:
        """What `resume` needs beside L, mu and seen: the sums behind the step lengths."""
        return {"row_sums": self._row_sums.copy(), "nu_sums": self._nu_sums.copy()}

    def resume(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from L (k, r) of the first k objects, mu, the sums, and `seen`; the reservoir begins anew."""
        k = len(arrays["L"])
        self.factor[:k], self._row_sums[:k] = arrays["L"], arrays["row_sums"]
        self.nu, self._nu_sums = np.sqrt(np.asarray(arrays["mu"]) * self._unit), np.array(arrays["nu_sums"])
        self.seen = self._lost = int(arrays["seen"])
        self._kept = 0

    @property
    def mu(self) -> np.ndarray:
        """(A,): the weights of the auxiliary kernels as they were given."""
        return self.nu**2 / self._unit

    def gram(self, kernels: Sequence[np.ndarray] = ()) -> np.ndarray:
        """(n, n) K'' = L L' + sum mu_a K_a. O(n^2 (r + A))."""
        return self.factor @ self.factor.T + sum((w * k for w, k in zip(self.mu, kernels)), np.zeros((1, 1)))

    def excess(self, triplets: np.ndarray) -> np.ndarray:
        """(m,): d(near pair) - d(far pair), of (m, 3) triplets or (m, 4) rows; below 0 where the kernel agrees. O(m (r
        + A))."""
        triplets = np.asarray(triplets)
        a, b, e, c = triplets.T if triplets.shape[1] == 4 else triplets[:, [0, 1, 0, 2]].T
        near, far = self.factor[a] - self.factor[b], self.factor[e] - self.factor[c]
        out = (near * near).sum(axis=1) - (far * far).sum(axis=1)
        return out + self.nu**2 @ (self._distances[:, a, b] - self._distances[:, e, c]) if len(self.nu) else out


@njit(cache=True, fastmath=True)
def _descend(triplets, factor, row_sums, nu, nu_sums, distances, loss, rate, shrink, shrink_nu, unit):
    rank, extra = factor.shape[1], len(nu)
    for t in range(len(triplets)):
        a, b, c = triplets[t, 0], triplets[t, 1], triplets[t, 2]
        x = 0.0
        for q in range(rank):
            near, far = factor[a, q] - factor[b, q], factor[a, q] - factor[c, q]
            x += near * near - far * far
        for k in range(extra):
            x += nu[k] * nu[k] * (distances[k, a, b] - distances[k, a, c])
        if loss == STE:
            g = 0.0
            if x > -30.0:
                g = 1.0 / (1.0 + np.exp(-x))
        else:
            g = 1.0 if x > -1.0 else 0.0
        size_a = size_b = size_c = 0.0
        for q in range(rank):
            fa, fb, fc = factor[a, q], factor[b, q], factor[c, q]
            da = 2.0 * g * (fc - fb) + 2.0 * shrink * fa
            db = 2.0 * g * (fb - fa) + 2.0 * shrink * fb
            dc = 2.0 * g * (fa - fc) + 2.0 * shrink * fc
            size_a += da * da
            size_b += db * db
            size_c += dc * dc
        row_sums[a] += size_a / rank
        row_sums[b] += size_b / rank
        row_sums[c] += size_c / rank
        step_a = rate / np.sqrt(row_sums[a] + 1e-12)
        step_b = rate / np.sqrt(row_sums[b] + 1e-12)
        step_c = rate / np.sqrt(row_sums[c] + 1e-12)
        for q in range(rank):
            fa, fb, fc = factor[a, q], factor[b, q], factor[c, q]
            factor[a, q] -= step_a * 2.0 * (g * (fc - fb) + shrink * fa)
            factor[b, q] -= step_b * 2.0 * (g * (fb - fa) + shrink * fb)
            factor[c, q] -= step_c * 2.0 * (g * (fa - fc) + shrink * fc)
        for k in range(extra):
            d = 2.0 * nu[k] * (g * (distances[k, a, b] - distances[k, a, c]) + shrink_nu * unit[k])
            nu_sums[k] += d * d
            nu[k] = max(0.0, nu[k] - rate * d / np.sqrt(nu_sums[k] + 1e-12))
