"""SelfTuning, a learner that tunes itself: a round in order. All constants are in settings.py.

``SelfTuning._play_block`` (learner.py) plays 1 to 1024 rounds at a time. Each member, and then each
layer, forecasts x and learns y at once, before it looks at the next round. No forecast of x reads
y, so it does not matter how many rounds are played at a time. A round of x, y, and one output:

1. The label                                                                     labels.py
    measure             limits of labels, every 8 rounds from the 16th on. Of the last 1024 and of
                        the last 16 labels: the median, and a reach of 20 median deviations. MEDIAN
                        is that of the 16; [LOW, HIGH] goes as far as both reach; [LEAST, MOST] as
                        far as 20 times the larger reach from MEDIAN, and as [LOW, HIGH]
    remember            y joins the last labels that measure reads; y, cut to [LEAST, MOST], those
                        that take_known reads
    take_known          the last label before y, and how the 13 before it differ from it
2. Members with lags: ensemble.play_lags                                         ensemble.py
    _find_views         what spaces see of x: x standardised; its normal scores; x       scales.py
                        standardised and these differences. And a hash of x, for 5
    Group.play          ridge and AWV of (y, cut, - last label), as in 4
    _add_last           the last label is added to their forecasts
3. The outlier: labels.judge
    y is replaced by MEDIAN if it is not in [LOW, HIGH] and no forecast of 2 is within
    |y - MEDIAN| / 4 of it, or if it is not in [LEAST, MOST]. The members of 4 learn this label
4. The other members
    Expert.play         the user's models, on x as it came                       experts.py
    Group.play          for each other space        members.py, group_rounds of hot/tuned/members.py
        sort_rounds         the view, scaled by a metric, goes to a leaf    hot/tuned/coordinates.py
        map_share           z = (1, R^-T k(x)), R'R = K of those atoms of the leaf that span. Then x
                            may join, by a coin of KORS, for later rounds. In linear spaces z is 1
                            and the view
        regression_rounds   ridge z'A^-1 b and AWV z'(A + z z')^-1 b, A = lam I + sum of z z', b =
                            sum of (y - offset) z, the past discounted; AWV is a member only if
                            nothing is forgotten, and without lags                   hot/awv.py
        play_rules          PA-I and gradient descent on z                 hot/tuned/rules.py
    Forest.play         twice: trees on x learn y, trees on x and the last three labels learn
                        y - last label. Down the path m = (sum + c m) / (count + c), for three c;
                        the forecasts are means over ten trees     forest.py, hot/tuned/forest.py
5. One forecast of these f (42 of groups, 6 of trees, the last label): ensemble.play_layers, which
   calls Layers._play_output for each output                    layers.py, hot/tuned/layers.py
   (f and y less offset and the layers' centre, cut to [-B, B], B the largest |y| before)
    first_layer_rounds  g: aggregating algorithm without and with share, ML-Poly, dynamic model
                        averaging of f                                           hot/experts.py
    regression_rounds   h = last + B ridge of (y - last) / B on ((f, g, 0) - last) / B: 3 of them,
                        by the loop of 4, where an output is a leaf
    prepare_corrections reads h, and writes the inputs and labels of
    regression_rounds   c = h_1 + B ridge of (y - h_1) / B, on h_1, the other h and g less h_1, the
                        cubes of all h and g, and m, all over B: 2 of them. m is the mean of y - h_1
                        in earlier rounds with this x, as if it had been 0 in two more
    final_layer_rounds  ML-Poly's mean of g_1, g_3, h and c, + centre + offset: the forecast
6. What comes later                                                              restarts.py
    record              the round joins the past, until the last restart
    _restart            after 48, 96, 192, ... rounds: new trees; after 32, 128, 512, ...:
        Scales.measure      of the first 15/16 of the past: scales, offsets, metrics, leaves
        make_members        groups and layers on these
        choose              points of these rounds join dictionaries, by KORS
        replay              steps 2, 4 and 5 again for all rounds; trees and experts forecast what
                            they did at the time; points of the last 1/16 may join
    end_period          every 1024 rounds: where recent labels no longer fill the range, layers
                        begin anew on its centre and B, and so does the unit of PA-I's C

Before the first restart all scales are infinite, so views are 0: there are linear spaces only, and
25 forecasts. After round 30 the first 16 labels are judged, once.

``_forecast`` is a round without a label. Leave out at first: threads (divide, Workspaces; a Share
is all leaves, rows and regressions), pieces of a restart (Paced), late labels (leads), what a
forecast before the label spares (was_forecast, Pending), calls without a look at types (run_loop,
enter, bind, unbind), and certificates (Regressions.totals and growth, Sums, certificates, compared,
excess, regrets, price), on which no forecast depends. ``_STATE`` names arrays: "cut" is self._cut.
"""
