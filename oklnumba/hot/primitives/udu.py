"""The U' D U factor of ridge regression, swept once for several rounds."""

from __future__ import annotations

from types import SimpleNamespace

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import hot, hot_apart

# A = lam I + sum z z' = U' D U with U unit upper triangular. Adding z z' (Gill, Golub, Murray and
# Saunders 1974, method C1) runs down the rows k of U with a running a = 1 + sum_{i<k} p_i^2 / D_i:
#
#     p = z_k;  a' = a + p^2 / D_k;  beta = p / (D_k a');  D_k <- D_k a' / a;  a <- a'
#     for j > k:   z_j -= p U_kj;   U_kj += beta z_j
#
# That is r^2 fused products a round, half of what the inverse takes, and it is backward stable: no
# drift, and small lam is no danger. In the end p = U^-T z (left in z's place) and a = 1 + z' A^-1 z
# (A before the round). With c = D^-1 U^-T sum y z, the ridge forecast is m = p . c and the AWV
# forecast m / a.
#
# A discount g of the past takes A to g A + z z'. It is local to a row of U, D_k <- g D_k but kept
# >= lam, and is done at the end of the round before: inv_d is 1 / D of the past as the next round
# finds it, discounted. (lam I is the floor, so the first round finds it as it is.) c stays as it
# is, for b is discounted too. Where the floor bites it adds delta_k u_k u_k' to A, u_k the row of
# U: the penalty delta_k (u_k.w - c_k)^2, which vanishes at the present estimate, so that neither
# that nor the minimum changes. With the pair (1, inf) the product and the minimum return D_k as it
# is, to the bit. (With (1, 1 / lam) nearly so: the floor is lam up to rounding.)
#
# A sweep of three rounds reads and writes U once. Every entry sees the same fused products in the
# same order as in three sweeps of one round: the results are the same bits, however a stream is
# cut. LLVM does not vectorise this with its many arrays, so the vectors are written out as LLVM
# code.

SWEEP = 3  # rounds a sweep: coefficients, rounds and rows just fit in 32 vector registers
PAIR = 2 * SWEEP  # rounds of two sweeps whose corners are worked out side by side
NARROW = 256  # columns up to which that pays: the rows of both stay in the first cache
TOGETHER = 4 * SWEEP  # rounds whose sweeps share one pass over U from memory
LANES = 8  # columns a vector; buffers have a multiple of it
TILE = 4  # rows of U a pass
NO_DISCOUNT = 1.0, np.inf  # 1 / discount and 1 / lam, the largest 1 / D that a discount leaves


def constant(value: int) -> ir.Constant:
    """Return LLVM's constant for an integer."""
    return ir.Constant(ir.IntType(64), value)


def _lanes_pass(builder, pointers, p, betas, lanes: int):
    """Return a function that writes LLVM code: ``lanes`` columns of TILE rows through the rounds.

    pointers : to the rows of U and the rounds in Z; p, betas : a row of numbers each round, no
    betas where U stays as it is.
    """
    vector = ir.VectorType(ir.DoubleType(), lanes)
    fma_type = ir.FunctionType(vector, [vector] * 3)
    fma = cgutils.get_or_insert_function(builder.module, fma_type, f"llvm.fma.v{lanes}f64")
    undefined = ir.Constant(vector, ir.Undefined)
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)

    def broadcast(scalar):
        first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, undefined, zeros)

    def load(address):
        loaded = builder.load(address)
        loaded.align = 8
        return loaded

    minus_p = [[broadcast(builder.fneg(value)) for value in row] for row in p]
    betas = [[broadcast(value) for value in row] for row in betas]
    rounds = len(p)

    def update(column):
        rows, starts = (
            [builder.bitcast(builder.gep(at, [column]), vector.as_pointer()) for at in part]
            for part in pointers
        )
        z, x = [load(at) for at in starts], [load(at) for at in rows]
        # Row i meets round t at step i + t: neighbours in this order do not wait for each other.
        for step in range(TILE + rounds - 1):
            pairs = [(i, step - i) for i in range(TILE) if 0 <= step - i < rounds]
            for i, t in pairs:
                z[t] = builder.call(fma, [minus_p[t][i], x[i], z[t]])
            for i, t in pairs if betas else ():
                x[i] = builder.call(fma, [betas[t][i], z[t], x[i]])
        for value, at in zip(x, rows, strict=True) if betas else ():
            builder.store(value, at).align = 8
        for value, at in zip(z, starts, strict=True):
            builder.store(value, at).align = 8

    return update


def _columns(module, rounds: int, learn: bool):
    """Return the LLVM function that takes TILE rows, right of their corner, through some rounds.

    Its arguments: where row k of U, and the rounds in Z and B, have column k; the stride of all
    three; k; and r.
    """
    index, pointer = ir.IntType(64), ir.DoubleType().as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer] * 3 + [index] * 3)
    function = cgutils.get_or_insert_function(module, kind, f"columns_{rounds}_{learn}")
    if function.blocks:
        return function
    function.linkage = "internal"
    function.attributes.add("noinline")
    U, Z, B, stride, k, r = function.args
    builder = ir.IRBuilder(function.append_basic_block())

    def starts(pointer, count):
        return [builder.gep(pointer, [builder.mul(stride, constant(i))]) for i in range(count)]

    def numbers(pointer):
        return [
            [builder.load(builder.gep(start, [constant(i)])) for i in range(TILE)]
            for start in starts(pointer, rounds)
        ]

    p, betas = numbers(Z), numbers(B) if learn else []
    pointers = starts(U, TILE), starts(Z, rounds)
    # Four columns to reach a multiple of LANES, then LANES at a time.
    in_first_half = builder.icmp_unsigned("==", builder.and_(k, constant(TILE)), constant(0))
    with builder.if_then(in_first_half):
        _lanes_pass(builder, pointers, p, betas, TILE)(constant(TILE))
    start = builder.sub(builder.and_(builder.add(k, constant(TILE + 7)), constant(-LANES)), k)
    passes = builder.udiv(builder.sub(builder.sub(r, k), start), constant(LANES))
    update = _lanes_pass(builder, pointers, p, betas, LANES)
    with cgutils.for_range(builder, passes) as loop:
        update(builder.add(start, builder.mul(loop.index, constant(LANES))))
    builder.ret_void()
    return function


def _factor_rows_codegen(rounds: int, learn: bool, waves: int):
    """Return the LLVM code generator of one pass over TILE rows of U, for that many rounds.

    With two waves there are rounds for both, and the second is one tile behind the first. Without
    ``learn`` U and D stay as they are: p = U^-T z only.
    """
    one = ir.Constant(ir.DoubleType(), 1.0)

    def codegen(context, builder, signature, args):
        arrays = [
            context.make_array(kind)(context, builder, value=value)
            for kind, value in zip(signature.args[:5], args[:5], strict=True)
        ]
        U, inv_d, Z, B, a = (array.data for array in arrays)
        first, r, inv_discount, inv_lam = args[5:]
        stride = cgutils.unpack_tuple(builder, arrays[0].shape, 2)[1]  # that of Z and B too

        def at(pointer, *terms):
            where = terms[0]
            for term in terms[1:]:
                where = builder.add(where, term)
            return builder.gep(pointer, [where])

        def begin(wave):
            """Return where a wave stands, and the numbers of the corner that it finds there."""
            k = builder.sub(first, constant(wave * TILE)) if wave else first
            rows = [
                builder.add(builder.mul(builder.add(k, constant(i)), stride), k)
                for i in range(TILE)
            ]
            own = [constant(wave * rounds + t) for t in range(rounds)]
            starts = [builder.add(builder.mul(t, stride), k) for t in own]
            d = [builder.load(at(inv_d, k, constant(i))) for i in range(TILE)]
            u = {
                (i, j): builder.load(at(U, rows[i], constant(j)))
                for i in range(TILE)
                for j in range(i + 1, TILE)
            }
            p = [[builder.load(at(Z, s, constant(j))) for j in range(TILE)] for s in starts]
            running = [builder.load(at(a, t)) for t in own] if learn else []
            beta = [[one] * TILE for _ in range(rounds)]
            return SimpleNamespace(
                k=k, rows=rows, own=own, starts=starts, d=d, u=u, p=p, running=running, beta=beta
            )

        def corner(w, t, i):
            """Take row i of the TILE x TILE corner on the diagonal through round t."""
            p = w.p[t]
            if learn:
                gain = builder.fmul(w.d[i], p[i])
                following = builder.fma(gain, p[i], w.running[t])
                inverse = builder.fdiv(one, following)
                w.beta[t][i] = builder.fmul(gain, inverse)
                # The discount and its floor, times a', are there before the division has ended:
                # they do not prolong the chain. A flag of their own keeps these products in this
                # order, in one round and in three.
                kept = builder.fmul(w.d[i], inv_discount, flags=("nsz",))
                kept = builder.fmul(kept, w.running[t], flags=("nsz",))
                most = builder.fmul(inv_lam, following, flags=("nsz",))
                below = builder.fcmp_ordered("<", most, kept)  # False for NaN, which stays
                kept = builder.select(below, most, kept)
                w.d[i] = builder.fmul(kept, inverse, flags=("nsz",))
                w.running[t] = following
            for j in range(i + 1, TILE):
                p[j] = builder.fma(builder.fneg(p[i]), w.u[i, j], p[j])
                if learn:
                    w.u[i, j] = builder.fma(w.beta[t][i], p[j], w.u[i, j])

        def end(w):
            """Write the corner back."""
            for value, t in zip(w.running, w.own, strict=learn):
                builder.store(value, at(a, t))
            for i in range(TILE):
                for t in range(rounds):
                    builder.store(w.p[t][i], at(Z, w.starts[t], constant(i)))
                if not learn:
                    continue
                builder.store(w.d[i], at(inv_d, w.k, constant(i)))
                for j in range(i + 1, TILE):
                    builder.store(w.u[i, j], at(U, w.rows[i], constant(j)))
                for t in range(rounds):
                    builder.store(w.beta[t][i], at(B, w.starts[t], constant(i)))

        both = [begin(wave) for wave in range(waves)]
        for t in range(rounds):
            for i in range(TILE):
                for w in both:  # side by side: each alone waits for its divisions
                    corner(w, t, i)
        for w in both:
            end(w)
        columns = _columns(builder.module, rounds, learn)
        for w in both:
            places = at(U, w.rows[0]), at(Z, w.starts[0]), at(B, w.starts[0])
            builder.call(columns, [*places, stride, w.k, r])
        return context.get_dummy_value()

    return codegen


if numba.config.DISABLE_JIT:

    def _factor_rows(rounds, learn=True, waves=1):
        def factor_rows(U, inv_d, Z, B, a, first, r, inv_discount, inv_lam):
            for s in range(waves * rounds):
                k = first - s // rounds * TILE
                for i in range(k, k + TILE):
                    p = Z[s, i]
                    if not learn:
                        Z[s, i + 1 : r] -= p * U[i, i + 1 : r]
                        continue
                    following = a[s] + inv_d[i] * p * p
                    beta = inv_d[i] * p / following
                    kept = inv_d[i] * inv_discount * a[s]
                    inv_d[i] = min(kept, inv_lam * following) / following
                    a[s] = following
                    B[s, i] = beta
                    Z[s, i + 1 : r] -= p * U[i, i + 1 : r]
                    U[i, i + 1 : r] += beta * Z[s, i + 1 : r]

        return factor_rows

else:

    def _factor_rows(rounds, learn=True, waves=1):
        codegen = _factor_rows_codegen(rounds, learn, waves)

        @intrinsic
        def factor_rows(typingctx, U, inv_d, Z, B, a, k, r, inv_discount, inv_lam):
            scalars = types.int64, types.int64, types.float64, types.float64
            return types.void(U, inv_d, Z, B, a, *scalars), codegen

        return factor_rows


# U : (cap, cap); inv_d : (cap,); Z, B : (SWEEP, cap); a : (SWEEP,); rows k to k + TILE of r, all in
# place; 1 / discount and 1 / lam, of which only learning takes notice.
factor_rows_1 = _factor_rows(1)
factor_rows_3 = _factor_rows(SWEEP)
# Two sweeps, the second one TILE behind the first: Z, B : (2 SWEEP, cap); a : (2 SWEEP,).
factor_rows_pair = _factor_rows(SWEEP, waves=2)
# The same without learning: Z becomes Z U^-1, nothing else changes.
solve_rows_1 = _factor_rows(1, learn=False)
solve_rows_3 = _factor_rows(SWEEP, learn=False)


@hot
def pad(q, rank):
    """Write zeros behind the first ``rank`` entries up to whole vectors, at least one."""
    padded = (larger(rank, 1) + LANES - 1) // LANES * LANES
    for j in range(rank, padded):
        q[j] = 0.0
    return padded


@hot
def ridge_forecast(p, c, scan, r):
    """Return p . c in four running sums, which are left in ``scan`` for ridge_learn."""
    q = r // 4
    s0 = s1 = s2 = s3 = 0.0
    for k in range(q):
        s0 += p[k] * c[k]
        s1 += p[q + k] * c[q + k]
        s2 += p[2 * q + k] * c[2 * q + k]
        s3 += p[3 * q + k] * c[3 * q + k]
        scan[k] = s0
        scan[q + k] = s1
        scan[2 * q + k] = s2
        scan[3 * q + k] = s3
    return (s0 + s1) + (s2 + s3)


@hot
def ridge_learn(y, beta, c, scan, r):
    """Bring c = D^-1 U^-T sum y z up to date: c_k += beta_k (y - sum_{i<=k} p_i c_i)."""
    q = r // 4
    rest = y
    for part in range(4):
        ck = c[part * q : (part + 1) * q]
        bk = beta[part * q : (part + 1) * q]
        sk = scan[part * q : (part + 1) * q]
        for k in range(q):
            ck[k] += bk[k] * (rest - sk[k])
        rest -= sk[q - 1]


@hot_apart
def factor_round(U, inv_d, setting, round, beta, a, r):
    """Add one round to the factor; round, beta : (1, cap); a : (1,); else as in factor_rounds."""
    inv_discount, inv_lam = setting
    for k in range(0, r, TILE):
        factor_rows_1(U, inv_d, round, beta, a, k, r, inv_discount, inv_lam)


@hot_apart
def factor_rounds(U, inv_d, setting, rounds, betas, a, count, r):
    """Add the first ``count`` rounds to the factor: whole sweeps together, or one round.

    Each TILE rows of U meet all the sweeps while they are in the cache. U : (cap, cap); inv_d :
    (cap,); setting : (1 / discount, 1 / lam), NO_DISCOUNT for none; rounds, betas : (>= count,
    cap); a : (>= count,), the arrays modified in place; r : columns in use, a multiple of LANES.
    """
    if count == 1:
        factor_round(U, inv_d, setting, rounds, betas, a, r)
        return
    inv_discount, inv_lam = setting
    pairs = count // PAIR if r <= NARROW else 0
    for step in range(0, r + pairs * TILE, TILE):
        for s in range(0, count - 1, SWEEP):
            k = step - smaller(s // PAIR, pairs) * TILE  # a sweep follows all those before
            if s < pairs * PAIR:
                second = s % PAIR != 0
                if 0 < k < r:
                    stop = s + PAIR
                    if not second:
                        factor_rows_pair(
                            U, inv_d, rounds[s:stop], betas[s:stop], a[s:stop], k, r,
                            inv_discount, inv_lam,
                        )  # fmt: skip
                    continue
                k -= TILE * second  # where the first begins, and the second ends, it is alone
            if 0 <= k < r:
                stop = s + SWEEP
                factor_rows_3(
                    U, inv_d, rounds[s:stop], betas[s:stop], a[s:stop], k, r, inv_discount, inv_lam
                )


@hot_apart
def solve_round(U, inv_d, round, beta, a, r):
    """Turn one round x into p = U^-T x; arguments as in factor_round."""
    inv_discount, inv_lam = NO_DISCOUNT
    for k in range(0, r, TILE):
        solve_rows_1(U, inv_d, round, beta, a, k, r, inv_discount, inv_lam)


@hot_apart
def solve_rounds(U, inv_d, rounds, betas, a, count, r):
    """Turn the first ``count`` rounds x into p = U^-T x; arguments as in factor_rounds."""
    if count == 1:
        solve_round(U, inv_d, rounds, betas, a, r)
        return
    inv_discount, inv_lam = NO_DISCOUNT
    for k in range(0, r, TILE):
        for s in range(0, count - 1, SWEEP):
            stop = s + SWEEP
            solve_rows_3(
                U, inv_d, rounds[s:stop], betas[s:stop], a[s:stop], k, r, inv_discount, inv_lam
            )
