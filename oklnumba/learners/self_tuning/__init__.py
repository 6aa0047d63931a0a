"""SelfTuning, a learner that tunes itself: a round in order.

Constants are in settings.py, which names the few that are elsewhere.

``SelfTuning._play_block`` (learner.py) plays 1 to 1024 rounds at a time. Each member, and then each
layer, forecasts x and learns y at once, before it looks at the next round. No forecast of x reads
y, so it does not matter how many rounds are played at a time. A round of x, y, and one output:

1. The label                                                                     labels.py
    measure             limits, after 16, 24, 32, ... labels; before, and if outliers=False, +-1e70.
                        Of the last 1024 and of the last 16 labels: the median, and a reach of 20
                        times the median deviation of the labels that differ from it (infinite if
                        none does). MEDIAN is that of the 16; LOW = min of both (median -
                        reach), HIGH = max of both (median + reach); LEAST = min(LOW, MEDIAN - 20 *
                        larger reach), MOST likewise
    remember            y joins the last labels that measure reads; y, cut to [LEAST, MOST], those
                        that take_known reads
    take_known          last: the last of these before y; how the 13 before it differ from it, 0
                        where there was none. Without a last one y - last below is 0
2. Members with lags: ensemble.play_lags                                         ensemble.py
    _find_views         views: x standardised, z = (x - mean) / scale, beyond 4: 4 + log(|z| - 3);
                        its normal scores; x and these differences, all standardised
                        (scales.py, hot/tuned/scaling.py). And a hash of x, for 5
    Group.play          ridge and AWV learn (y cut) - last, as in 4; AWV's forecasts serve 3 only
    _add_last           last is added to their forecasts
3. The outlier: labels.judge
    y is replaced by MEDIAN if it is not in [LOW, HIGH] and no forecast of 2 is within
    |y - MEDIAN| / 4 of y, or if it is not in [LEAST, MOST]. From here on y is this label; last
    and the differences stay cut, not judged
4. The other members: experts; then ensemble.play_others, groups and, beside them, forests
    Expert.play         the user's models, on x as it came                       experts.py
    Group.play          for each space but that of 2: four Gaussian and a linear one, on x
                        standardised, of one leaf; three Laplacian ones, in a metric, with a tree of
                        leaves, one on normal scores. y counts from offset: the middle between the
                        least and the largest label of the past but outliers, measured at restarts;
                        0 before, and for labels -1 and +1
                                              members.py, group_rounds of hot/tuned/members.py
        sort_rounds         the view, scaled by the metric, goes to a leaf  hot/tuned/coordinates.py
        map_share           z = (1, R^-T k(x)), R'R = K of the leaf's atoms but those in the span of
                            earlier ones; k: make_kernel (ensemble.py). Then x may join, for later
                            rounds, with the probability in the head of coordinates.py. In linear
                            spaces, if they are no wider than the budget, z is 1 and the view
        regression_rounds   A = lam I and b = 0 at first. Ridge forecasts z'A^-1 b, AWV
                            z'(A + z z')^-1 b; then A += z z', b += y z; then, to forget, D of
                            A = U'DU becomes max(discount D, lam), and b A times the old A^-1 b. (In
                            the code z enters A first, for that needs no y; hot/awv.py tells the
                            discount as the start of the next round.) AWV is a member only if
                            nothing is forgotten.       leaf_rounds calls awv_rounds of hot/awv.py
        play_rules          w += tau z: PA-I in the linear and in three Gaussian spaces, descent in
                            the linear one; tau is in the head of           hot/tuned/rules.py
    Forest.play         ten trees on x, as it came, learn y; with one output, ten on last, two
                        differences and x learn y - last, and add last. A node has the mean
                        m = (sum + s * m of its parent) / (count + s), the root sum / count, for
                        three s. A tree forecasts m of the leaf of x, then y joins the sums of the
                        path; forecasts are means over the ten. (In the code y counts from the
                        trees' own offset, in their unit)            forest.py, hot/tuned/forest.py
5. One forecast of these f (42 of groups, 6 of trees, of experts, last): ensemble.play_layers, which
   calls Layers._play_output for each output. From here on f, last among them, and y count from
   offset + centre. B is the largest |y| before this round, or what end_period left. All f are cut
   to [-B, B]; so is y, except in ML-Poly (both layers), in the variance of dynamic model averaging,
   and in B. While B = 0, z = v = 0                                layers.py, hot/tuned/layers.py
    first_layer_rounds  g: the aggregating algorithm without and with share, ML-Poly, dynamic model
                        averaging with share (head of hot/experts.py); writes for the regressions
                        z = (f but last, g, 0), each less last, / B, and v = (y - last) / B to learn
    regression_rounds   3 ridge regressions of v on z, by the loop of 4: an output is a leaf there
    prepare_corrections h = last + B times what these forecast, cut; writes for the corrections
                        z = (h_1, h_2 - h_1, h_3 - h_1, all g - h_1) / B, the cubes of all h / B and
                        g / B, and r / B; and v = (y - h_1) / B. r is the sum of y - h_1 in earlier
                        rounds with this x over 2 + their number, cut. Then y - h_1 joins this sum
    regression_rounds   2 ridge regressions of this v on this z
    final_layer_rounds  c = h_1 + B times what these forecast, cut; ML-Poly's mean of g_1, g_3, h
                        and c, + centre + offset, is the forecast
6. What comes later (learner.py, restarts.py)
    record              the round joins the past, until the last restart
    Forest.grow         after 48, 96, 192, ... rounds, up to the last restart: new trees, grown on
                        at most the latest 8192 of the first 15/16 of the past; they learn the rest
    Restarts.next_ensemble, _build: after 32, 128, 512, 2048, and, if the past is small, 8192 and
                        32,768: a new ensemble, in four steps. (_end_fit does this and the former
                        when a fit ends, if a restart is to come and the last one is over 1/16 of
                        the rounds ago)
        Scales.measure      of the first 15/16 of the past: scales, offsets, metrics, leaves
        Ensemble.make_members   groups and layers on these
        Ensemble.choose     points of these rounds join dictionaries, by KORS
        Ensemble.replay     2, 4 and 5 again for all rounds; trees and experts forecast what they
                            did at the time; points of the last 1/16 may join
    end_period          every 1024 rounds: low and high, the least and largest label of the last two
                        periods (at least -1 and +1, if all labels are). If (high - low) / 2 <
                        B / 4: centre = (low + high) / 2, B = (high - low) / 2 in all four g, and
                        g_1 to g_3 and the final ML-Poly begin anew. The larger of |low| and |high|
                        becomes the unit of PA-I's C where it is below a quarter of it

Before the first restart scales are infinite, so views are 0: there are linear spaces only, and 25
forecasts. After round 30 the first 16 labels of the past are cut, and judged without a look at
forecasts (judge_first).

``_forecast`` is a round without a label. Leave out at first: threads (divide, Workspaces; a Share
is all leaves, rows and regressions; in layers.py an output, and h or c), pieces of a restart
(Paced), late labels (leads), what a forecast before the label spares (was_forecast, Pending), calls
without a look at types (run_loop, enter, bind, unbind), how factors are packed and read (Stretch,
PassWork), memory and sizes (_SPARSE, _PADDED, _REMADE, free_pages, _note_full, row_sizes), the
order of results (unsort_results), and certificates (Regressions.totals and growth, Sums,
certificates, compared, excess, regrets, lost, price), on which no forecast depends. ``_STATE``
names arrays: "cut" is self._cut.
"""
