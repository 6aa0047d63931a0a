"""exp, sine and cosine that vectorise, the bit casts they need, and the larger of two numbers."""

import numpy as np

from oklnumba.hot.primitives.jit import exact


@exact
def larger(a, b):
    """Return the larger of two numbers; a if one is NaN. Numba's max takes 30 ms to compile."""
    return b if b > a else a


@exact
def smaller(a, b):
    """Return the smaller of two numbers; a if one is NaN."""
    return b if b < a else a


@exact
def clip(value, bound):
    """Return the number of [-bound, bound] next to a value that is not NaN."""
    return larger(-bound, smaller(bound, value))


@exact
def float_to_bits(x):
    """Return the bit pattern of a float64 as int64."""
    return np.float64(x).view(np.int64)


@exact
def bits_to_float(bits):
    """Return the float64 with the given bit pattern."""
    return np.int64(bits).view(np.float64)


# Adding and subtracting 1.5 * 2^52 rounds to the nearest integer and leaves it in the low bits of
# the sum: no float-to-integer conversion, which AVX2 lacks for 64 bits.
ROUND_SHIFT = 6755399441055744.0
LOG2_E = 1.4426950408889634
LN2_HIGH = 6.93145751953125e-1  # 20 trailing zero bits: n * LN2_HIGH is exact
LN2_LOW = 1.42860682030941723212e-6
EXP_LOWEST = -708.0  # exp underflows to subnormal numbers below
FAR = 1e3  # exp(-FAR) is 0; longer distances are cut to it, lest they become infinity times 0
TWO_OVER_PI = 0.6366197723675814
HALF_PI_1 = 1.5707963267341256  # pi/2 in three parts (Cody and Waite)
HALF_PI_2 = 6.077100506303966e-11
HALF_PI_3 = 2.0222662487959506e-21
SINCOS_LARGEST = 1.0e5  # beyond, the three parts of pi/2 lose digits: libm instead


@exact
def exp_nonpositive(x):
    """Return exp(x) for x <= 0 to 2e-16 relative; 0 below -708. Branch-free, so loops vectorise."""
    clamped = EXP_LOWEST if x < EXP_LOWEST else x  # so that NaN stays NaN
    shifted = clamped * LOG2_E + ROUND_SHIFT
    n = shifted - ROUND_SHIFT
    f = (clamped - n * LN2_HIGH) - n * LN2_LOW
    p = 1.6059043836821613e-10  # Taylor coefficients 1/13!, 1/12!, ...
    p = p * f + 2.08767569878681e-09
    p = p * f + 2.505210838544172e-08
    p = p * f + 2.755731922398589e-07
    p = p * f + 2.7557319223985893e-06
    p = p * f + 2.48015873015873e-05
    p = p * f + 1.984126984126984e-04
    p = p * f + 1.3888888888888889e-03
    p = p * f + 8.333333333333333e-03
    p = p * f + 4.1666666666666664e-02
    p = p * f + 1.6666666666666666e-01
    p = p * f + 0.5
    p = p * f + 1.0
    p = p * f + 1.0
    scale = bits_to_float((float_to_bits(shifted) + 1023) << 52)  # 2^n
    return 0.0 if x < EXP_LOWEST else p * scale


@exact
def sin_cos(x):
    """Return (sin x, cos x) to 4e-16 for |x| <= SINCOS_LARGEST. Branch-free, so loops vectorise."""
    shifted = x * TWO_OVER_PI + ROUND_SHIFT
    n = shifted - ROUND_SHIFT
    f = ((x - n * HALF_PI_1) - n * HALF_PI_2) - n * HALF_PI_3
    z = f * f
    s = 1.58969099521155010221e-10
    s = s * z - 2.50507602534068634195e-08
    s = s * z + 2.75573137070700676789e-06
    s = s * z - 1.98412698298579493134e-04
    s = s * z + 8.33333333332248946124e-03
    s = s * z - 1.66666666666666324348e-01
    s = f + f * (z * s)
    c = -1.13596475577881948265e-11
    c = c * z + 2.08757232129817482790e-09
    c = c * z - 2.75573143513906633035e-07
    c = c * z + 2.48015872894767294178e-05
    c = c * z - 1.38888888888741095749e-03
    c = c * z + 4.16666666666666019037e-02
    c = 1.0 - (0.5 * z - z * (z * c))
    quadrant = float_to_bits(shifted)
    sine = c if quadrant & 1 else s
    cosine = s if quadrant & 1 else c
    sine = -sine if quadrant & 2 else sine
    cosine = -cosine if (quadrant + 1) & 2 else cosine
    return sine, cosine
