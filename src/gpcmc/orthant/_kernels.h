/* Elementwise loops of the samplers.
 *
 * They are C and not Cython because the compiler makes one clone of each for AVX-512, AVX2 and the
 * baseline, and picks at load time: the wheel stays portable and the loops use the whole vector.
 */
#ifndef GPCMC_KERNELS_H
#define GPCMC_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

#if defined(_MSC_VER)
#define INLINE static __forceinline
#else
#define INLINE static inline __attribute__((always_inline))
#endif

static const double MILLS[22] = {
    0.769193049750063,       -0.6653825028900566,     0.49530561596997486,
    -0.31353315667130743,    0.16502036617046467,     -0.06911863870620183,
    0.020795066798283985,    -0.0029933767724500864,  -0.0007978693822937287,
    0.0005448990842708135,   -5.9375821179365175e-05, -4.976293228261972e-05,
    1.6681534930276417e-05,  3.981347514549385e-06,   -2.7699264094600722e-06,
    -3.376678983504427e-07,  4.338791223224394e-07,   4.378669466922948e-08,
    -6.623458819165407e-08,  -1.0518636059566774e-08, 7.48298425457329e-09,
    2.1617056432794994e-09};
static const double EXP[14] = {
    1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
    1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};

/* Standard normal at t = |x| <= 37.5: e = exp(-t^2/2) and p = (t + 5) Q(t)/e, Q the upper tail.
 *
 * p is smooth in y = (t - 5)/(t + 5) on the whole half line, and MILLS is its Chebyshev interpolant of
 * degree 21 on 0 <= t <= 38.5 in powers of y. exp() is the usual reduction to |r| <= ln(2)/2 and a Taylor
 * polynomial of degree 13. No branch: the loops that it is inlined in vectorise.
 */
INLINE void normal_parts(double t, double *e, double *p)
{
    const double log2_e = 1.4426950408889634;
    const double ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45;
    const double shift = 0x1.8p52; /* adding it rounds to an integer, kept in the low bits */
    const double y = (t - 5.0) / (t + 5.0);
    double mills = MILLS[21];
#pragma GCC unroll 32
    for (int j = 20; j >= 0; j--)
        mills = mills * y + MILLS[j];

    const double a = -0.5 * t * t;
    const double rounded = a * log2_e + shift;
    const double k = rounded - shift;
    const double r = (a - k * ln2_high) - k * ln2_low;
    double taylor = EXP[13];
#pragma GCC unroll 32
    for (int j = 12; j >= 0; j--)
        taylor = taylor * r + EXP[j];
    uint64_t bits, base; /* of a NaN any bits will do, and an unsigned shift may lose them */
    memcpy(&bits, &rounded, sizeof bits);
    memcpy(&base, &shift, sizeof base);
    bits = (bits - base + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    *e = power * taylor;
    *p = mills;
}

/* x <- Phi(x), in place, to about 1e-13 relative for x >= -37.5 (below that, the value there). */
CLONES static void normal_cdf(int n, double *x)
{
    for (int m = 0; m < n; m++) {
        double t = x[m] < 0 ? -x[m] : x[m], e, p;
        t = t > 37.5 ? 37.5 : t;
        normal_parts(t, &e, &p);
        const double q = e * p / (t + 5.0);
        x[m] = x[m] < 0 ? q : 1.0 - q;
    }
}

enum { FACTORS = 64 }; /* of at least 0.01: their product cannot underflow */

/* Return the sum of log Phi(x), and put phi(x)/Phi(x) into slope; below -37.5 by continued fraction.
 *
 * Phi(x) is exp(-x^2/2) times a factor of 0.01 to 0.4 on the left and a factor of 0.5 to 1 on the right: one
 * logarithm does for the product of many factors.
 */
CLONES static double log_normal_cdf(int n, const double *restrict x, double *restrict slope)
{
    const double root = 0.3989422804014327; /* 1/sqrt(2 pi) */
    double total = 0.0;
    for (int first = 0; first < n; first += FACTORS) {
        const int count = n - first < FACTORS ? n - first : FACTORS;
        double factor[FACTORS], exponent[FACTORS];
        for (int m = 0; m < FACTORS; m++) {
            factor[m] = 1.0;
            exponent[m] = 0.0;
        }
        int far = 0;
        for (int m = 0; m < count; m++) {
            const double z = x[first + m];
            double t = z < 0 ? -z : z, e, p;
            far |= z < -37.5;
            t = t > 37.5 ? 37.5 : t;
            normal_parts(t, &e, &p);
            const double mills = p / (t + 5.0);
            const double f = z < 0 ? mills : 1.0 - e * mills;
            factor[m] = f;
            exponent[m] = z < 0 ? -0.5 * t * t : 0.0;
            slope[first + m] = (z < 0 ? root : root * e) / f;
        }
        if (far)
            for (int m = 0; m < count; m++) {
                const double t = -x[first + m];
                if (!(t > 37.5))
                    continue;
                double excess = 0.0; /* hazard - t = 1/(t + 2/(t + 3/(t + ...))) */
                for (int level = 12; level > 0; level--)
                    excess = level / (t + excess);
                slope[first + m] = t + excess;
                factor[m] = 1.0;
                exponent[m] = -0.5 * t * t + log(root / (t + excess));
            }
        for (int half = FACTORS / 2; half > 0; half /= 2)
            for (int m = 0; m < half; m++) {
                factor[m] *= factor[m + half];
                exponent[m] += exponent[m + half];
            }
        total += log(factor[0]) + exponent[0];
    }
    return total;
}

/* u <- the standard normal quantile of u in [0, 1), in place: normal draws from uniform ones.
 *
 * Wichura (1988), algorithm AS 241, PPND16: a rational function of u(1-u) in the middle, and two of
 * r = sqrt(-log(min(u, 1-u))) in the tails, for r below and above 5, to about 1e-15 relative. All are
 * evaluated, for the loop to vectorise. A zero is taken for the smallest normal number.
 */
CLONES static void normal_quantile(int n, double *u)
{
    static const double A[8] = {
        3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
        1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
        3.3430575583588128105e4, 2.5090809287301226727e3};
    static const double B[8] = {
        1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
        2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
        5.2264952788528545610e3};
    static const double C[8] = {
        1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
        3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
        2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double D[8] = {
        1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
        1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
        1.05075007164441684324e-9};
    static const double F[8] = {
        6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
        2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double G[8] = {
        1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
        7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
        2.04426310338993978564e-15};

    for (int m = 0; m < n; m++) {
        const double q = u[m] - 0.5;
        const double s = 0.180625 - q * q;
        double an = A[7], ad = B[7];
#pragma GCC unroll 8
        for (int j = 6; j >= 0; j--) {
            an = an * s + A[j];
            ad = ad * s + B[j];
        }

        double tail = q < 0 ? u[m] : 1.0 - u[m];
        tail = tail > 0x1p-1022 ? tail : 0x1p-1022;
        /* log(tail) = k log 2 + 2 atanh(f), with 2^k near tail and f = (w - 1)/(w + 1), w = tail/2^k */
        uint64_t bits, k;
        double w, k_double;
        memcpy(&bits, &tail, sizeof bits);
        k = ((bits + (1ULL << 51)) >> 52) - 1023; /* rounds at w = 1.5: |f| <= 1/5 */
        bits -= k << 52;
        memcpy(&w, &bits, sizeof w);
        k += 0x4338000000000000ULL; /* 1.5 * 2^52: the low bits of a double hold an integer */
        memcpy(&k_double, &k, sizeof k);
        k_double -= 0x1.8p52;
        const double f = (w - 1.0) / (w + 1.0), f2 = f * f;
        double h = 1.0 / 23;
#pragma GCC unroll 16
        for (int j = 21; j >= 1; j -= 2)
            h = h * f2 + 1.0 / j;
        const double r = sqrt(-(0.6931471805599453 * k_double + 2.0 * f * h));
        const double rt = r - 1.6, rf = r - 5.0;
        double tn = C[7], td = D[7], fn = F[7], fd = G[7];
#pragma GCC unroll 8
        for (int j = 6; j >= 0; j--) {
            tn = tn * rt + C[j];
            td = td * rt + D[j];
            fn = fn * rf + F[j];
            fd = fd * rf + G[j];
        }
        const double size = (rf > 0.0 ? fn : tn) / (rf > 0.0 ? fd : td);
        const double far = q < 0 ? -size : size;
        u[m] = s < 0.0 ? far : q * an / ad;
    }
}

/* out[m] += sum_j g[j] rows[j, m]: the means' share of the coordinates of the same leaf. */
CLONES static void add_rows(int n, int count, const double *restrict g, const double *restrict rows,
                            int64_t stride, double *restrict out)
{
    for (int j = 0; j < count; j++) {
        const double *row = rows + j * stride;
        for (int m = 0; m < n; m++)
            out[m] += g[j] * row[m];
    }
}

/* out[m] = source[index[m]] */
CLONES static void gather(int n, const double *restrict source, const int32_t *restrict index,
                          double *restrict out)
{
    for (int m = 0; m < n; m++)
        out[m] = source[index[m]];
}

CLONES static void gather_index(int n, const int32_t *restrict source, const int32_t *restrict index,
                                int32_t *restrict out)
{
    for (int m = 0; m < n; m++)
        out[m] = source[index[m]];
}

/* The sum, in eight parts: the additions do not wait for one another. */
static inline double sum_of(int n, const double *x)
{
    double part[8] = {0.0};
    int m = 0;
    for (; m + 8 <= n; m += 8)
        for (int j = 0; j < 8; j++)
            part[j] += x[m + j];
    for (; m < n; m++)
        part[0] += x[m];
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

#endif
