"""Rounds of FOGD: gradient descent on Fourier features.

Lu et al. 2016, Algorithm 1:

    u_1, ..., u_D ~ N(0, I / sigma^2), w_1 = 0; for t = 1, ..., T:
        z_t = (sin u_1.x_t, cos u_1.x_t, ..., sin u_D.x_t, cos u_D.x_t) / sqrt(D)
        yhat_t = w_t.z_t;   w_{t+1} = w_t - eta l'(yhat_t) z_t

Features of a few rounds are written at a time, all sines before all cosines.
"""

from typing import Annotated, NamedTuple

from oklnumba.hot.primitives.elementary import smaller
from oklnumba.hot.primitives.features import fourier_block
from oklnumba.hot.primitives.jit import DIVERGED, DONE, LARGEST_FORECAST, Array, Integers, hot
from oklnumba.hot.primitives.linalg import add_multiple, dot
from oklnumba.hot.primitives.losses import loss_derivative


class FOGDState(NamedTuple):
    """The weights of the features."""

    w: Annotated[Array, "r"]
    counts: Annotated[Integers, "counts"]  # r, which stand for ATOMS


@hot
def fogd_rounds(X, y, frequencies, scale, Z, state, loss, eta, forecasts):
    """Play FOGD, or only forecast if y is None. One loop for all feature maps: their bits agree.

    X : (n, d), or (0, d) if Z holds the features of the n rounds; frequencies : (d, f); Z : (rows,
    r), workspace for some rounds' features.
    """
    n, w, r = forecasts.shape[0], state.w, state.w.shape[0]
    for start in range(0, n, Z.shape[0]):
        count = smaller(Z.shape[0], n - start)
        if X.shape[0] > 0:
            fourier_block(X[start : start + count], frequencies, scale, Z)
        for t in range(start, start + count):
            z = Z[t - start]
            forecast = dot(z, w, r)
            if y is not None:
                if not abs(forecast) < LARGEST_FORECAST:
                    return t, DIVERGED
                step = eta * loss_derivative(loss, forecast, y[t])
                if step != 0.0:
                    add_multiple(w, -step, z, r)
            forecasts[t] = forecast
    return n, DONE


@hot
def fogd_forecasts(X, frequencies, scale, Z, state, forecasts):
    """Write what FOGD would forecast in each round; arguments as in fogd_rounds."""
    fogd_rounds(X, None, frequencies, scale, Z, state, 0, 0.0, forecasts)
