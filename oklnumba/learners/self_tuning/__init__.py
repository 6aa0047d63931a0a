"""SelfTuning, a learner that tunes itself: a round in order, of an input x and a label y.

``SelfTuning._play_block`` (learner.py) plays 1 to 1024 rounds at a time. Each member, and then each
layer, forecasts x and learns y at once, before it sees the next round. No forecast of x reads y, so
it does not matter how many rounds are played at a time. ``_forecast`` is a round without a label.
Where y comes late, what all forecast at the time is learned from in place of forecasts of x now;
rows to learn and rows only to forecast, with NaN for y, alternate in a block.

1. The label (labels.py, class Labels)
    measure         the limits of usual labels, after 16, 24, 32, ... labels
    remember        y joins the last labels, and, cut to wide limits, the inputs of later rounds;
                    x is forecast with the label before y, and how the 13 before differ from it
Ensemble.play (ensemble.py) then lets all who forecast play, one after the other:
2. The space with lags, and the last label. The space plays as in 4, on x and these differences,
   learns y - last, and adds last to its forecasts
3. Labels.judge: where y is beyond the limits and no forecast of 2 is near it, the median of the
   last 16 labels is learned in place of y
4. The others
    Lasting         the user's models, on x as it came (forecasters.py), and trees: ten on x, as it
                    came, ten on x and the last labels, of which three means each are forecasts
                    (forest.py; the head of hot/tuned/forest.py)
    Group           a space: three Gaussian and a linear one, on x standardised (scales.py), and
                    three Laplacian ones, in a metric, with a tree of leaves. One call of
                    space_rounds plays a single round of all spaces; of a block, one call a leaf,
                    in threads (Groups in groups.py; the head of hot/tuned/space.py): a dictionary
                    by KORS, ridge regressions, AWV beside each, PA-I and descent. y counts from the
                    middle of the labels of the past, ``offsets``
5. Layers: one forecast of all these, last among them (layers.py; the head of hot/tuned/layers.py):
   four aggregations, three ridge regressions on all forecasts, two on what these forecast, ML-Poly
6. Residuals: ten trees on x learn y less this forecast; ML-Poly of it, of it with what they
   forecast, and of what boosted trees make of it where y is -1 or +1 is the forecast of the round
   (forest.py)
7. What comes later. In single rounds the work is done in pieces before (Timetable, core/guard.py)
    Restarts.record the round joins the past, until the last restart (restarts.py)
    Forest.grow     after 48, 96, 192, ... rounds: new trees, grown on the first 15/16 of the past
    Restarts        after 32, 128, 512, 2048, ... rounds a new ensemble is made of the first 3/4 of
                    the past, from round 8192 on of 6/7: Scales.measure, then groups on these
                    scales, whose dictionaries choose among the past (Ensemble.choose). It plays 2,
                    4 and 5 again for the whole past (Ensemble.replay), but trees and experts, whose
                    forecasts are recorded
    end_period      after each 1024 rounds: ranges that labels no longer fill are forgotten

Before the first restart scales are infinite, so inputs count as 0: there are linear spaces only.
Constants are in settings.py, which names the few that are elsewhere. Certificates (totals, growth,
sums, excess, regrets, price) and sizes are written beside the forecasts, none of which reads them.
"""
