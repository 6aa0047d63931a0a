"""SelfTuning, a learner that tunes itself: a round, from the label to the next restart.

``SelfTuning._play_block`` (learner.py) plays 1 to 1024 rounds. Every loop forecasts a row before it
learns it, so a round has the bits that it has alone. Here is one, of an input x and a label y, for
one output. All constants are in settings.py.

1. The label                                                                     labels.py
    measure             every 8 rounds from the 16th on: MIDDLE, the median of the last 16 labels;
                        LOW and HIGH, 20 median deviations from the median of the last 16 and of the
                        last 1024 labels, the farther one; LEAST and MOST, 20 times as far away
    remember            y, cut to [LEAST, MOST], is appended to the last labels
    take_known          the last label before y, and how the 13 before it differ from it; of late
                        labels those that were known when x was forecast
2. Members with lags: ensemble.play_lags                                         ensemble.py
    _find_views         Z, x standardised; its normal scores; Z and the differences;   scales.py
                        and a hash of x, for 5
    Group.play          ridge regressions of y, cut, - last label on (1, Z, differences), as in 4
    _add_last           the last label is added to their forecasts
3. The outlier: labels.judge
    y is replaced by MIDDLE if it is beyond LOW or HIGH and no forecast of 2 is within
    |y - MIDDLE| / 4 of it, or if it is beyond LEAST or MOST
4. The other members learn this label, less the middle of all labels (scales.offsets)
    Expert.play         the user's models, on x as it came                       experts.py
    Group.play          for each space of settings.SPACES      members.py, hot/tuned/members.py
        sort_rounds         x, scaled by a metric, goes to a leaf   hot/tuned/coordinates.py
        map_share           z = (1, R^-T k(x)), R'R = K of the leaf's dictionary, which x may join
                            by a coin of KORS, for later rounds; in linear spaces z = (1, x)
        regression_rounds   ridge z'A^-1 b and AWV z'(A + z z')^-1 b, A = lam I + sum of z z' and
                            b = sum of y z, both discounted                      hot/awv.py
        play_rules          PA-I and gradient descent on z                 hot/tuned/rules.py
    Forest.play         ten trees on x learn y; ten on x and the last three labels learn
                        y - last label                            forest.py, hot/tuned/forest.py
5. One forecast of these 49 (42 of groups, 6 of trees, the last label): ensemble.play_layers, which
   calls Layers._play_output for each output                    layers.py, hot/tuned/layers.py
    first_layer_rounds  4 aggregations of the members                        hot/experts.py
    regression_rounds   3 ridge regressions on members and aggregations (the loop of 4; an output is
                        a leaf there)
    correction_rounds   on these 7 forecasts, their cubes, and what was lacking before at this x:
    regression_rounds   2 ridge regressions of what the first of the 3 lacks
    final_layer_rounds  ML-Poly's mean of 2 aggregations, 3 regressions, 2 corrections: the forecast
6. What comes later                                                              restarts.py
    record              the round joins the past, until the last restart
    _restart            after 48, 96, 192, ... rounds: new trees; after 32, 128, 512, ...:
        Scales.measure      of the first 15/16 of the past: scales, metrics, leaves
        make_members        groups and layers on these
        choose              points of these rounds join dictionaries, by KORS
        replay              steps 2, 4 and 5 again for all rounds; trees and experts forecast what
                            they did at the time; points of the last 1/16 may join
        (after round 30, before the first: the first 16 labels are judged)
    end_period          every 1024 rounds: forget the range that labels no longer fill

``_forecast`` is a round without a label. Leave out at first: threads (divide, Share, Workspaces),
pieces of a restart (Paced), late labels (leads), what a forecast before the label spares
(was_forecast), calls without a look at types (run_loop, enter, bind, unbind), and certificates
(Regressions.totals, Sums, certificates, compared, growth, excess, regrets, price), on which no
forecast depends. ``_STATE`` names arrays: "cut" is self._cut, made by _make_state.
"""
