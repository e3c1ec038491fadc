# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
r"""Normal rectangles in one to three dimensions by quadrature, many at once, to rounding on the log scale.

*By the correlations.* Where r moves and the limits stay, P moves by the density at the corners (Plackett 1954). With
standard limits a < b, in two dimensions and with r = sin t

    P(rho) = P_1 P_2 + 1 / (2 pi) integral_0^(asin rho) sum_corners +- exp(-q(h, k; sin t) / 2) dt,

and in three, with the first coordinate's correlations r_12 = rho_12 sin x and r_13 = rho_13 sin x and r_23 as it is,

    P = P_1 P_23 + integral_0^(pi/2) cos x sum over pairs (1, j) of
        rho_1j sum_corners +- phi_2(h, k; r_1j) P(other | h, k) dx.

The determinant along that way is a sum of two terms that are not negative, so that singular covariances are cases like
any other. The differences of corners leave an absolute error of about 1e-16.

*By a coordinate.* Where P is small beside these terms, it is the integral over one coordinate x of phi(x) times the
probability of the others given x, relative to its peak on the log scale. The integrand is log-concave: all of it is in
one interval about its mode.

Both integrals are by Gauss and Legendre's rule on panels that are halved until halves agree with the whole.

References
----------
Plackett (1954), Biometrika 41, 351. Drezner and Wesolowsky (1990), Journal of Statistical Computation and Simulation
35, 101. Genz (2004), Statistics and Computing 14, 251.
"""

from libc.math cimport INFINITY, M_PI, asin, cos, erf, erfc, exp, fabs, fmax, fmin, isinf, log, log1p, sin, sqrt
from scipy.special.cython_special cimport erfcx

import numpy as np

cdef enum:
    NODES = 10
    DEPTH = 60     # halvings of a panel, at most
    PANELS = 4000  # evaluated for one integral, at most

cdef double AGREED = 1e-10   # halves so near to the whole, over the integral, are much nearer to the truth
cdef double NOTHING = 1e-15  # and halves so near to it, over all of the sum, need not be nearer
cdef double GAINED = 1e-4    # share of that distance that is left, at most
cdef double ROUNDING = 4e-16  # of a sum of terms, over their sizes
cdef double ENOUGH = 5e-13   # relative error up to which the differences of corners are taken
cdef double FALL = 42.0      # nats below the mode where an integrand ends
cdef double ROOT_2 = sqrt(2.0), LOG_2 = log(2.0), LOG_ROOT_2PI = 0.5 * log(2.0 * M_PI)
cdef double[NODES] NODE, WEIGHT

_node, _weight = np.polynomial.legendre.leggauss(NODES)
for _k in range(NODES):
    NODE[_k], WEIGHT[_k] = _node[_k], _weight[_k]

# the size is that of the terms which the value is a sum of: it is rounded as they are large
ctypedef double (*Integrand)(double x, const double *p, double *size) noexcept nogil
ctypedef double (*Height)(double x, const double *p) noexcept nogil


cdef struct Sum:
    double value
    double size   # of the terms
    double gap    # what the last halving changed, at most


cdef inline double rule(Integrand f, const double *p, double low, double high, double *size) noexcept nogil:
    cdef double half = 0.5 * (high - low), middle = 0.5 * (high + low), total = 0.0, own
    cdef int k
    size[0] = 0.0
    for k in range(NODES):
        total += WEIGHT[k] * f(middle + half * NODE[k], p, &own)
        size[0] += WEIGHT[k] * own
    size[0] *= fabs(half)
    return half * total


cdef Sum integral(Integrand f, const double *p, double low, double high, double scale) noexcept nogil:
    """Integrate; `scale` is what else the result is added to."""
    cdef double[DEPTH + 2] ends, wholes
    cdef int[DEPTH + 2] depths
    cdef double start = low, size = 0.0, near_size, far_size, near, far, middle, gap, own
    cdef int top = 0, spent = 1
    cdef Sum found = Sum(0.0, 0.0, 0.0)
    ends[0], depths[0] = high, 0
    wholes[0] = rule(f, p, low, high, &size)
    scale += fabs(wholes[0])
    while top >= 0:
        middle = 0.5 * (start + ends[top])
        near = rule(f, p, start, middle, &near_size)
        far = rule(f, p, middle, ends[top], &far_size)
        gap = fabs(near + far - wholes[top])
        spent += 2
        own = AGREED * fmax(size, found.size)
        if gap <= fmax(own, NOTHING * fmax(scale, fabs(found.value))) or depths[top] >= DEPTH or spent > PANELS:
            found.value += near + far
            found.size += near_size + far_size
            found.gap += gap * (GAINED if gap <= own else 1.0)
            start = ends[top]
            top -= 1
        else:
            depths[top] += 1
            wholes[top] = far
            ends[top + 1], wholes[top + 1], depths[top + 1] = middle, near, depths[top]
            top += 1
    return found


# --- one dimension


cdef double log_mass(double a, double b) noexcept nogil:
    """log P(a < Z < b), in every tail and however narrow."""
    cdef double low = a, high = b, middle, half, total, x, ratio
    cdef int k
    if not a < b:
        return -INFINITY
    if a + b < 0.0:
        low, high = -b, -a
    if low <= 0.0:
        return log(0.5 * (erf(high / ROOT_2) - erf(low / ROOT_2)))
    if (high - low) * (high + low) < 1.0:
        half, middle, total = 0.5 * (high - low), 0.5 * (high + low), 0.0
        for k in range(NODES):
            x = half * NODE[k]
            total += WEIGHT[k] * exp(-x * (middle + 0.5 * x))
        return log(half * total) - 0.5 * middle * middle - LOG_ROOT_2PI
    ratio = 0.0
    if not isinf(high):
        ratio = exp(-0.5 * (high - low) * (high + low)) * erfcx(high / ROOT_2) / erfcx(low / ROOT_2)
    if low > 1e150:
        return -INFINITY
    return log(erfcx(low / ROOT_2)) - LOG_2 - 0.5 * low * low + log1p(-ratio)


cdef inline double mass(double a, double b, double *size) noexcept nogil:
    """The same without a logarithm; `size` is that of the terms."""
    cdef double near
    if not a < b:
        size[0] = 0.0
        return 0.0
    if a > 0.0:
        near = 0.5 * erfc(a / ROOT_2)
        size[0] = near
        return near - 0.5 * erfc(b / ROOT_2)
    if b < 0.0:
        near = 0.5 * erfc(-b / ROOT_2)
        size[0] = near
        return near - 0.5 * erfc(-a / ROOT_2)
    near = 0.5 * (erf(b / ROOT_2) - erf(a / ROOT_2))
    size[0] = near
    return near


# --- by the correlations


cdef inline double exponent(double h, double k, double r, double w) noexcept nogil:
    """(h^2 - 2 r h k + k^2) / (2 w) for w = 1 - r^2, without cancellation as r goes to one or minus one."""
    if r >= 0.0:
        return 0.5 * (h - k) * (h - k) / w + h * k / (1.0 + r)
    return 0.5 * (h + k) * (h + k) / w - h * k / (1.0 - r)


cdef double corners(double t, const double *p, double *size) noexcept nogil:
    """The integrand in two dimensions: p has both lower limits, then both upper ones."""
    cdef double r = sin(t), c = cos(t), total = 0.0, one
    cdef int i, j
    size[0] = 0.0
    for i in range(2):
        if isinf(p[2 * i]):
            continue
        for j in range(2):
            if isinf(p[2 * j + 1]):
                continue
            one = exp(-exponent(p[2 * i], p[2 * j + 1], r, c * c)) / (2.0 * M_PI)
            size[0] += one
            total += one if i == j else -one
    return total


cdef double two_by_corners(const double *a, const double *b, double rho, double *error) noexcept nogil:
    cdef double[4] p
    cdef double base = exp(log_mass(a[0], b[0]) + log_mass(a[1], b[1])), value
    cdef Sum found
    p[0], p[1], p[2], p[3] = a[0], a[1], b[0], b[1]
    found = integral(corners, p, 0.0, asin(rho), base)
    value = base + found.value
    error[0] = ROUNDING * (base + found.size) + found.gap
    return value


cdef inline double standard(double x, double mean, double sd) noexcept nogil:
    """(x - mean) / sd, where a spread of nothing is a step."""
    cdef double gap = x - mean
    if isinf(x):
        return x
    if sd > 0.0:
        return gap / sd
    return INFINITY if gap > 0.0 else (-INFINITY if gap < 0.0 else 0.0)


cdef double pairs(double x, const double *p, double *size) noexcept nogil:
    """The integrand in three dimensions: p has lower limits, upper ones, rho_12, rho_13, rho_23, det, q, 1 - rho^2."""
    cdef double s = sin(x), c = cos(x), total = 0.0, r, w, other, mean, sd, h, k, one, rho, own
    cdef double r_23 = p[8], det = p[9] + c * c * p[10]
    cdef int j, m, i, corner
    size[0] = 0.0
    for j in range(1, 3):
        m, rho = 3 - j, p[5 + j]
        if rho == 0.0:
            continue
        r, other = rho * s, p[5 + m] * s
        w = c * c + s * s * p[10 + j]  # 1 - r^2
        sd = sqrt(det / w)
        for i in range(2):
            h = p[3 * i]
            if isinf(h):
                continue
            for corner in range(2):
                k = p[3 * corner + j]
                if isinf(k):
                    continue
                mean = (h * (other - r * r_23) + k * (r_23 - r * other)) / w
                one = mass(standard(p[m], mean, sd), standard(p[3 + m], mean, sd), &own)
                if own > 0.0:
                    mean = c * rho * exp(-exponent(h, k, r, w)) / (2.0 * M_PI * sqrt(w))
                    size[0] += fabs(mean) * own
                    total += mean * one if i == corner else -mean * one
    return total


cdef double three_by_corners(const double *a, const double *b, const double *rho, double *error) noexcept nogil:
    """rho has rho_12, rho_13, rho_23."""
    cdef double[13] p
    cdef double[2] low, high
    cdef int[3] order
    cdef int k
    cdef double r_12, r_13, r_23, first, base, ignored
    cdef Sum found
    # the pair with the largest correlation stays together
    order[0] = 0
    if fabs(rho[1]) >= fabs(rho[2]) and fabs(rho[1]) > fabs(rho[0]):
        order[0] = 1
    elif fabs(rho[0]) >= fabs(rho[2]) and fabs(rho[0]) >= fabs(rho[1]):
        order[0] = 2
    order[1], order[2] = (1 if order[0] == 0 else 0), (1 if order[0] == 2 else 2)
    for k in range(3):
        p[k], p[3 + k] = a[order[k]], b[order[k]]
    r_12, r_13, r_23 = rho[order[0] + order[1] - 1], rho[order[0] + order[2] - 1], rho[order[1] + order[2] - 1]
    p[6], p[7], p[8] = r_12, r_13, r_23
    p[9] = fmax((1.0 - r_13) * (1.0 + r_13) * (1.0 - r_23) * (1.0 + r_23) - (r_12 - r_13 * r_23) ** 2, 0.0)
    p[10] = (r_12 - r_13) ** 2 + 2.0 * r_12 * r_13 * (1.0 - r_23)
    p[10] = fmax(p[10], 0.0)
    p[11], p[12] = (1.0 - r_12) * (1.0 + r_12), (1.0 - r_13) * (1.0 + r_13)
    low[0], low[1], high[0], high[1] = p[1], p[2], p[4], p[5]
    first = exp(log_mass(p[0], p[3]))
    base = first * two_by_corners(low, high, r_23, &ignored)
    found = integral(pairs, p, 0.0, 0.5 * M_PI, base)
    error[0] = first * ignored + ROUNDING * (base + found.size) + found.gap
    return base + found.value


# --- by a coordinate


cdef struct Peak:
    double mode
    double height
    double low
    double high


cdef Peak peak_of(Height log_f, const double *p, double a, double b) noexcept nogil:
    """The mode of a log-concave function between a and b, and where it is `FALL` below that."""
    cdef double x = fmin(fmax(0.0, a), b), step, left, right, f_left, f_right, f, trial, f_trial, near, far, end, ended
    cdef int _k, side
    cdef Peak found
    f = log_f(x, p)
    step = 1e-3
    # a bracket: x is the highest of three
    for side in range(-1, 2, 2):
        step = 1e-3 * (1.0 + fabs(x))
        for _k in range(200):
            trial = fmin(fmax(x + side * step, a), b)
            f_trial = log_f(trial, p)
            # where nothing is left of the mass its logarithm is minus infinity: on
            if not (f_trial > f or (f == -INFINITY and trial != x)) or trial == x:
                break
            x, f, step = trial, f_trial, 2.0 * step
    left = right = x
    step = 1e-3 * (1.0 + fabs(x))
    f_left = f_right = f
    for _k in range(200):
        if left > a and f_left >= f:
            left = fmax(left - step, a)
            f_left = log_f(left, p)
            if f_left > f:
                x, f = left, f_left
        if right < b and f_right >= f:
            right = fmin(right + step, b)
            f_right = log_f(right, p)
            if f_right > f:
                x, f = right, f_right
        if (left <= a or f_left < f) and (right >= b or f_right < f):
            break
        step *= 2.0
    for _k in range(200):  # golden section, until the bracket is flat
        if f - fmin(f_left, f_right) < 0.1 or right - left <= 1e-14 * (1.0 + fabs(x)):
            break
        if right - x > x - left:
            trial = x + 0.381966 * (right - x)
        else:
            trial = x - 0.381966 * (x - left)
        f_trial = log_f(trial, p)
        if f_trial > f:
            if trial > x:
                left, f_left = x, f
            else:
                right, f_right = x, f
            x, f = trial, f_trial
        elif trial > x:
            right, f_right = trial, f_trial
        else:
            left, f_left = trial, f_trial
    found.mode, found.height = x, f
    for side in range(-1, 2, 2):
        end = a if side < 0 else b
        near, far = 0.0, fmax(fabs((left if side < 0 else right) - x), 1e-13 * (1.0 + fabs(x)))
        for _k in range(1100):
            if far >= fabs(end - x) or log_f(x + side * far, p) < f - FALL:
                break
            near, far = far, 2.0 * far
        far = fmin(far, fabs(end - x))
        if far < fabs(end - x) or log_f(end, p) < f - FALL:
            for _k in range(12):
                trial = 0.5 * (near + far)
                if log_f(x + side * trial, p) < f - FALL:
                    far = trial
                else:
                    near = trial
        ended = x + side * far
        if side < 0:
            found.low = fmax(ended, a)
        else:
            found.high = fmin(ended, b)
    return found


cdef double log_given_one(double x, const double *p) noexcept nogil:
    """log of phi(x) P(second | first = x): p has the second's limits, rho, root of 1 - rho^2."""
    cdef double shift = p[2] * x
    return log_mass((p[0] - shift) / p[3], (p[1] - shift) / p[3]) - 0.5 * x * x


cdef double of_one(double x, const double *p, double *size) noexcept nogil:
    size[0] = exp(log_given_one(x, p) - p[4])
    return size[0]


cdef double two_by_coordinate(const double *a, const double *b, double rho, double *error) noexcept nogil:
    """log P, and its error."""
    cdef double[5] p
    cdef double value
    cdef Sum low, high
    cdef Peak peak
    p[0], p[1], p[2], p[3], p[4] = a[1], b[1], rho, sqrt((1.0 - rho) * (1.0 + rho)), 0.0
    peak = peak_of(log_given_one, p, a[0], b[0])
    if peak.height == -INFINITY:
        error[0] = INFINITY
        return -INFINITY
    p[4] = peak.height
    low = integral(of_one, p, peak.low, peak.mode, 0.0)
    high = integral(of_one, p, peak.mode, peak.high, low.value)
    value = log(low.value + high.value) + peak.height - LOG_ROOT_2PI
    # the exponent is a sum of terms as large as x^2 / 2, each rounded
    error[0] = (low.gap + high.gap) / (low.value + high.value) + 4e-15 * (1.0 + fabs(value) + peak.mode ** 2)
    return value


cdef double log_two(const double *a, const double *b, double rho, double *error) noexcept nogil:
    """log P in two dimensions, and its error."""
    cdef double value, gap
    if not (a[0] < b[0] and a[1] < b[1]):
        error[0] = 0.0
        return -INFINITY
    if rho == 0.0 or (isinf(a[0]) and isinf(b[0])) or (isinf(a[1]) and isinf(b[1])):
        value = log_mass(a[0], b[0]) + log_mass(a[1], b[1])
        error[0] = 2e-15 * (1.0 + fabs(value)) if value > -INFINITY else INFINITY
        return value
    if fabs(rho) == 1.0:
        if rho > 0.0:
            value = log_mass(fmax(a[0], a[1]), fmin(b[0], b[1]))
        else:
            value = log_mass(fmax(a[0], -b[1]), fmin(b[0], -a[1]))
        error[0] = 4e-15 * (1.0 + fabs(value)) if value > -INFINITY else 0.0
        return value
    value = two_by_corners(a, b, rho, &gap)
    if 0.0 < value and gap <= ENOUGH * value:
        error[0] = gap / value
        return log(value)
    return two_by_coordinate(a, b, rho, error)


cdef double log_given_two(double x, const double *p) noexcept nogil:
    """The same for two others: their limits, correlations with the first, conditional spreads and correlation."""
    cdef double[2] low, high
    cdef double ignored
    cdef int k
    for k in range(2):
        low[k] = standard(p[k], p[4 + k] * x, p[6 + k])
        high[k] = standard(p[2 + k], p[4 + k] * x, p[6 + k])
    return log_two(low, high, p[8], &ignored) - 0.5 * x * x


cdef double of_two(double x, const double *p, double *size) noexcept nogil:
    size[0] = exp(log_given_two(x, p) - p[9])
    return size[0]


cdef double three_by_coordinate(const double *a, const double *b, const double *rho, double *error) noexcept nogil:
    """log P, and its error: over the coordinate whose correlations are least."""
    cdef double[10] p
    cdef int first = 0, one, two
    cdef double value
    cdef Sum low, high
    cdef Peak peak
    if fabs(rho[1]) >= fabs(rho[2]) and fabs(rho[1]) > fabs(rho[0]):
        first = 1
    elif fabs(rho[0]) >= fabs(rho[2]) and fabs(rho[0]) >= fabs(rho[1]):
        first = 2
    one, two = (1 if first == 0 else 0), (1 if first == 2 else 2)
    p[0], p[1], p[2], p[3] = a[one], a[two], b[one], b[two]
    p[4], p[5] = rho[first + one - 1], rho[first + two - 1]
    p[6], p[7] = sqrt((1.0 - p[4]) * (1.0 + p[4])), sqrt((1.0 - p[5]) * (1.0 + p[5]))
    p[8], p[9] = 0.0, 0.0
    if p[6] > 0.0 and p[7] > 0.0:
        p[8] = fmin(fmax((rho[one + two - 1] - p[4] * p[5]) / (p[6] * p[7]), -1.0), 1.0)
    peak = peak_of(log_given_two, p, a[first], b[first])
    if peak.height == -INFINITY:
        error[0] = INFINITY
        return -INFINITY
    p[9] = peak.height
    low = integral(of_two, p, peak.low, peak.mode, 0.0)
    high = integral(of_two, p, peak.mode, peak.high, low.value)
    value = log(low.value + high.value) + peak.height - LOG_ROOT_2PI
    error[0] = (low.gap + high.gap) / (low.value + high.value) + 1e-13 + 4e-15 * (1.0 + fabs(value) + peak.mode ** 2)
    return value


cdef double log_three(const double *a, const double *b, const double *rho, double *error) noexcept nogil:
    cdef double[2] low, high
    cdef double value, gap
    cdef int k, one, two
    cdef bint free
    for k in range(3):
        if not a[k] < b[k]:
            error[0] = 0.0
            return -INFINITY
    for k in range(3):  # without limits, or independent of the others
        one, two = (1 if k == 0 else 0), (1 if k == 2 else 2)
        free = isinf(a[k]) and isinf(b[k])
        if free or (rho[k + one - 1] == 0.0 and rho[k + two - 1] == 0.0):
            low[0], low[1], high[0], high[1] = a[one], a[two], b[one], b[two]
            value = log_two(low, high, rho[one + two - 1], error)
            if not free:
                value += log_mass(a[k], b[k])
                error[0] += 1e-15 * (1.0 + fabs(value))
            return value
    value = three_by_corners(a, b, rho, &gap)
    if 0.0 < value and gap <= ENOUGH * value:
        error[0] = gap / value
        return log(value)
    return three_by_coordinate(a, b, rho, error)


def log_probabilities(const double[:, ::1] lower, const double[:, ::1] upper, const double[:, ::1] rho,
                      double[::1] log_p, double[::1] error):
    """Fill in log P(lower < v < upper) of standard normal v, and bounds on its rounding.

    Parameters
    ----------
    lower, upper : (m, n) array
        n is 1, 2 or 3.
    rho : (m, n (n - 1) / 2) array
        Correlations, of n = 3 those of the coordinates (1, 2), (1, 3), (2, 3).
    log_p, error : (m,) array
    """
    cdef Py_ssize_t i, n = lower.shape[1]
    with nogil:
        for i in range(lower.shape[0]):
            if n == 1:
                log_p[i] = log_mass(lower[i, 0], upper[i, 0])
                error[i] = 1e-15 * (1.0 + fabs(log_p[i])) if log_p[i] > -INFINITY else 0.0
            elif n == 2:
                log_p[i] = log_two(&lower[i, 0], &upper[i, 0], rho[i, 0], &error[i])
            else:
                log_p[i] = log_three(&lower[i, 0], &upper[i, 0], &rho[i, 0], &error[i])
