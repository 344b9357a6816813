//! Laws and worked numbers of the gate (PROBE.md §6.3, §6.4, §10).

use proptest::prelude::*;

use super::score::{fail_ln, pass_ln};
use super::*;

const RHO: f64 = 0.1;
const PROMISE: Limit = Limit::Promise(50_000);
const OF_BLUE: Limit = Limit::OfBlue(110);

fn rule(max_millis: Option<u32>, max_percent_of_blue: Option<u32>) -> Rule {
    Rule {
        name: "orders".to_owned(),
        percentile: Percentile::P99,
        metric: Metric::EndToEnd,
        max_millis,
        max_percent_of_blue,
        enforcement: Enforcement::Enforced,
    }
}

fn both() -> Vec<Rule> {
    vec![rule(Some(50), Some(110))]
}

fn side(p99: Quantile) -> SideWindow {
    let quantiles = Quantiles { p99, ..Quantiles::default() };
    SideWindow { planned: 300, end_to_end: quantiles, confirm: quantiles, ..SideWindow::default() }
}

fn window(index: u64, blue: u64, green: u64) -> PairedWindow {
    PairedWindow {
        index,
        invalid: None,
        blue: Some(side(Quantile::Micros(blue))),
        green: Some(side(Quantile::Micros(green))),
    }
}

fn good(index: u64) -> PairedWindow {
    window(index, 18_000, 18_000)
}

fn bad(index: u64) -> PairedWindow {
    window(index, 18_000, 90_000)
}

fn invalid(index: u64) -> PairedWindow {
    PairedWindow { invalid: Some("the prober stalled".to_owned()), ..good(index) }
}

fn fold(windows: impl IntoIterator<Item = PairedWindow>, rules: &[Rule], settings: &Settings) -> Evidence {
    windows.into_iter().fold(Evidence::default(), |evidence, window| evidence.push(&window, rules, settings))
}

fn judged(windows: impl IntoIterator<Item = PairedWindow>, rules: &[Rule]) -> Judgement {
    let settings = Settings::default();
    judge(&fold(windows, rules, &settings), rules, &settings, 3600)
}

/// A small generator with a seed, so that a simulation says the same every time.
struct Dice(u64);

impl Dice {
    fn is_below(&mut self, share: f64) -> bool {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let high = u32::try_from(self.0 >> 32).expect("32 bits");
        f64::from(high) / f64::from(u32::MAX) < share
    }
}

/// The fewest windows, `bad` of them bad, after which a test passes.
fn windows_until_pass(limit: Limit, rho: f64, bad: u32) -> u32 {
    let passes = |total: &u32| pass_ln(limit, rho, Count { good: total - bad, bad }) >= 20.0_f64.ln();
    (bad..1000).find(passes).expect("it passes at last")
}

#[test]
fn windows_until_pass_are_as_published() {
    let table = [
        (OF_BLUE, RHO, vec![7, 10, 14, 17, 20]),
        (PROMISE, RHO, vec![34, 65, 84, 102, 119]),
        (PROMISE, 0.05, vec![70, 133, 170, 207]),
    ];
    for (limit, rho, wanted) in table {
        let bads = 0..u32::try_from(wanted.len()).expect("few");
        let got: Vec<u32> = bads.map(|bad| windows_until_pass(limit, rho, bad)).collect();
        assert_eq!(got, wanted, "{limit:?} at rho {rho}");
    }
}

#[test]
fn a_clean_green_passes_at_window_34_and_not_before() {
    assert_eq!(judged((0..33).map(good), &both()).verdict, Outcome::NoVerdict);
    let judgement = judged((0..34).map(good), &both());
    assert_eq!(judgement.verdict, Outcome::Pass, "{}", judgement.reason);
    assert_eq!(judgement.rules.len(), 2, "a promise and a comparison");
}

#[test]
fn the_minimum_of_windows_holds_rule_b() {
    let rules = [rule(None, Some(110))];
    assert_eq!(judged((0..23).map(good), &rules).verdict, Outcome::NoVerdict);
    assert_eq!(judged((0..24).map(good), &rules).verdict, Outcome::Pass);
}

#[test]
fn the_minimum_duration_holds_everything() {
    let settings = Settings { minimum_duration_seconds: 600, ..Settings::default() };
    let evidence = fold((0..60).map(good), &both(), &settings);
    let judgement = judge(&evidence, &both(), &settings, 300);
    assert_eq!(judgement.verdict, Outcome::NoVerdict);
    assert!(judgement.reason.contains("want 600 s, 300 s more"), "{}", judgement.reason);
    assert_eq!(judge(&evidence, &both(), &settings, 600).verdict, Outcome::Pass);
}

#[test]
fn what_is_missing_is_said() {
    let windows = (0..47).map(|index| if [9, 19, 29].contains(&index) { bad(index) } else { good(index) });
    let judgement = judged(windows, &both());
    assert_eq!(judgement.verdict, Outcome::NoVerdict);
    assert!(judgement.reason.contains("44 good, 3 bad of 47 windows"), "{}", judgement.reason);
    assert!(judgement.reason.contains("needs about 55 more good windows (275 s)"), "{}", judgement.reason);
}

#[test]
fn nothing_never_passes() {
    let rules = both();
    let unknown = |index| PairedWindow {
        index,
        invalid: None,
        blue: Some(side(Quantile::Unknown)),
        green: Some(side(Quantile::Unknown)),
    };
    let few = |index| {
        let three = |p99| SideWindow { planned: 3, ..side(Quantile::Micros(p99)) };
        PairedWindow { index, invalid: None, blue: Some(three(640)), green: Some(three(9000)) }
    };
    let unseen = |index| PairedWindow { index, ..PairedWindow::default() };
    let cases = [
        (judged([], &rules), 0),
        (judged((0..100).map(unknown), &rules), 100),
        (judged((0..100).map(few), &rules), 100),
        (judged((0..100).map(unseen), &rules), 0),
        (judged((0..100).map(good), &[]), 100),
    ];
    for (judgement, valid) in cases {
        assert_eq!(judgement.verdict, Outcome::NoVerdict, "{}", judgement.reason);
        assert_eq!(judgement.windows_valid, valid, "{}", judgement.reason);
        assert!(judgement.rules.iter().all(|state| state.votes_good + state.votes_bad == 0));
    }
}

#[test]
fn advisory_rules_decide_nothing() {
    let advisory = Rule { enforcement: Enforcement::Advisory, ..rule(Some(1), None) };
    let rules = [rule(None, Some(110)), advisory];
    let judgement = judged((0..24).map(good), &rules);
    assert_eq!(judgement.verdict, Outcome::Pass, "{}", judgement.reason);
    let only = [Rule { enforcement: Enforcement::Advisory, ..rule(Some(50), None) }];
    assert_eq!(judged((0..100).map(good), &only).verdict, Outcome::NoVerdict);
}

#[test]
fn votes_compare_with_blue_and_a_millisecond() {
    let vote = |percent, blue, green| {
        let tests = tests(&[rule(None, Some(percent))]);
        tests.first().and_then(|test| {
            let window =
                PairedWindow { index: 0, invalid: None, blue: Some(side(blue)), green: Some(side(green)) };
            test.vote(&window)
        })
    };
    let micros = Quantile::Micros;
    let table = [
        (110, micros(400), micros(600), Some(Vote::Good)),
        (110, micros(10_000), micros(12_000), Some(Vote::Good)),
        (110, micros(10_000), micros(12_001), Some(Vote::Bad)),
        (125, micros(10_000), micros(13_500), Some(Vote::Good)),
        (90, micros(10_000), micros(10_001), Some(Vote::Bad)),
        (110, micros(10_000), Quantile::Infinite, Some(Vote::Bad)),
        (110, Quantile::Infinite, micros(10_000), Some(Vote::Good)),
        (110, Quantile::Infinite, Quantile::Infinite, None),
        (110, Quantile::Unknown, micros(1), None),
        (110, micros(u64::MAX), micros(u64::MAX), Some(Vote::Good)),
    ];
    for (percent, blue, green, wanted) in table {
        assert_eq!(vote(percent, blue, green), wanted, "{percent} % of {blue:?}: {green:?}");
    }
}

#[test]
fn hard_stops_fail_at_once() {
    let stops: [fn(&mut SideWindow); 7] = [
        |side| side.lost = 1,
        |side| side.duplicated = 1,
        |side| side.reordered = 1,
        |side| side.nacked = 1,
        |side| side.returned = 1,
        |side| side.closed = 1,
        |side| side.blocked = 1,
    ];
    for stop in stops {
        let mut green = good(40);
        stop(green.green.as_mut().expect("seen"));
        let judgement = judged((0..40).map(good).chain([green]), &both());
        assert_eq!(judgement.verdict, Outcome::Fail, "{}", judgement.reason);
        let mut blue = good(40);
        stop(blue.blue.as_mut().expect("seen"));
        assert_eq!(judged((0..40).map(good).chain([blue]), &both()).verdict, Outcome::Pass);
    }
}

#[test]
fn three_windows_running_far_off_fail_and_two_do_not() {
    let far = |index| window(index, 18_000, 500_001);
    let run = |windows: &[u64]| {
        let windows: Vec<u64> = windows.to_vec();
        judged(
            (0..60).map(move |index| if windows.contains(&index) { far(index) } else { good(index) }),
            &both(),
        )
    };
    assert_eq!(run(&[10, 11, 12]).verdict, Outcome::Fail);
    assert_ne!(run(&[10, 11, 13]).verdict, Outcome::Fail);
}

#[test]
fn unequal_runs_give_no_verdict_with_both_rates() {
    let unequal = |index| PairedWindow {
        index,
        invalid: None,
        blue: Some(SideWindow { planned: 100_000, ..side(Quantile::Micros(690_000)) }),
        green: Some(SideWindow { planned: 2500, ..side(Quantile::Micros(2000)) }),
    };
    let judgement = judged((0..60).map(unequal), &both());
    assert_eq!(judgement.verdict, Outcome::NoVerdict);
    assert!(judgement.reason.contains("100000 and 2500"), "{}", judgement.reason);
}

#[test]
fn more_than_a_tenth_invalid_gives_no_verdict_whatever_else() {
    let every_eighth = |step: fn(u64) -> PairedWindow| {
        (0..400).map(move |index| if index % 8 == 0 { invalid(index) } else { step(index) })
    };
    assert_eq!(judged(every_eighth(good), &both()).verdict, Outcome::NoVerdict);
    assert_eq!(judged(every_eighth(bad), &both()).verdict, Outcome::NoVerdict);
    let every_twelfth = (0..400).map(|index| if index % 12 == 5 { invalid(index) } else { good(index) });
    assert_eq!(judged(every_twelfth, &both()).verdict, Outcome::Pass);
}

#[test]
fn a_good_past_does_not_outweigh_a_bad_hour() {
    // Eight hours good, then one in which every other window is worse: no pass, and no fail.
    let windows =
        (0..6480).map(|index| if index >= 5760 && index % 2 == 0 { bad(index) } else { good(index) });
    let rules = [rule(None, Some(110))];
    let judgement = judged(windows, &rules);
    assert_eq!(judgement.verdict, Outcome::NoVerdict, "{}", judgement.reason);
    assert!(judgement.rules.iter().all(|state| state.pass_ln > 20.0_f64.ln()), "the whole run would pass");
}

#[test]
fn hours_without_windows_leave_nothing_recent() {
    let judgement = judged((0..100).map(good).chain([good(5000)]), &both());
    assert_eq!(judgement.verdict, Outcome::NoVerdict, "{}", judgement.reason);
}

#[test]
fn a_green_that_turns_bad_after_forty_hours_fails_within_ten_minutes() {
    let settings = Settings::default();
    let hours_40 = 40 * 720;
    let mut evidence = fold((0..hours_40).map(good), &both(), &settings);
    let failed = (hours_40..hours_40 + 1000).find(|index| {
        evidence = evidence.clone().push(&bad(*index), &both(), &settings);
        judge(&evidence, &both(), &settings, 200_000).verdict == Outcome::Fail
    });
    assert!(failed.expect("it fails") - hours_40 <= 120);
}

#[test]
fn a_week_of_windows_stays_finite() {
    let settings = Settings { recent_seconds: 60, ..Settings::default() };
    let rules = both();
    for step in [good, bad] {
        let evidence = fold((0..120_960).map(step), &rules, &settings);
        let judgement = judge(&evidence, &rules, &settings, 604_800);
        for state in &judgement.rules {
            assert!(
                [state.pass_ln, state.recent_ln, state.fail_ln].iter().all(|ln| ln.is_finite()),
                "{state:?}"
            );
        }
    }
}

#[test]
fn alike_neighbors_vote_in_pairs_and_that_is_said() {
    // Bad windows come in runs of five.
    let windows = (0..200).map(|index| if index % 40 < 5 { bad(index) } else { good(index) });
    let judgement = judged(windows, &[rule(Some(50), None)]);
    assert!(judgement.rules.iter().all(|state| state.merged));
    assert!(judgement.reason.contains("merged in pairs"), "{}", judgement.reason);
}

#[test]
fn a_changed_limit_starts_its_evidence_anew() {
    let settings = Settings::default();
    let evidence = fold((0..40).map(good), &both(), &settings);
    let stricter = vec![rule(Some(20), Some(110))];
    let evidence = evidence.push(&good(40), &stricter, &settings);
    let votes: Vec<u32> =
        judge(&evidence, &stricter, &settings, 300).rules.iter().map(|state| state.votes_good).collect();
    assert_eq!(votes, [1, 41]);
}

#[test]
fn at_the_margin_a_pass_is_rare_even_when_looked_at_every_window() {
    for (limit, share) in [(OF_BLUE, 0.5), (PROMISE, RHO)] {
        let runs: u32 = 4000;
        let passes = (1..=runs).filter(|seed| ever_passes(limit, share, u64::from(*seed)));
        let passes = u32::try_from(passes.count()).expect("few");
        assert!(f64::from(passes) / f64::from(runs) <= 0.05, "{limit:?}: {passes} of {runs}");
    }
}

fn ever_passes(limit: Limit, share: f64, seed: u64) -> bool {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut votes = Count::default();
    (0..600).any(|_| {
        votes = votes.plus(dice.is_below(share));
        pass_ln(limit, RHO, votes) >= 20.0_f64.ln()
    })
}

/// Three percentiles of two metrics, each with both limits, over 48 h: green is equal, with a window noise
/// (standard deviation .25 of the log ratio) that makes a third of its windows look worse.
#[test]
fn an_equal_green_seldom_fails() {
    let threshold = f64::from(Settings::default().fail_threshold).ln();
    let runs: u32 = 40;
    let fails = (1..=runs).filter(|seed| {
        let mut dice = Dice(u64::from(*seed).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        [(OF_BLUE, 0.35), (PROMISE, 0.05)].iter().any(|(limit, share)| {
            (0..6).any(|_| {
                let mut votes = Count::default();
                (0..34_560).any(|_| {
                    votes = votes.plus(dice.is_below(*share));
                    let ln = fail_ln(*limit, RHO, votes);
                    if ln < 0.0 {
                        votes = Count::default();
                    }
                    ln >= threshold
                })
            })
        })
    });
    assert!(fails.count() * 20 <= 40);
}

proptest! {
    #[test]
    fn a_good_window_never_lowers_a_pass_score(good in 0u32..5000, bad in 0u32..5000) {
        for limit in [PROMISE, OF_BLUE] {
            let before = pass_ln(limit, RHO, Count { good, bad });
            let after = pass_ln(limit, RHO, Count { good: good + 1, bad });
            prop_assert!(before.is_finite() && after >= before);
            let fail = fail_ln(limit, RHO, Count { good, bad });
            prop_assert!(fail.is_finite());
        }
    }

    #[test]
    fn evidence_survives_storing_and_replaying(kinds in proptest::collection::vec(0u8..4, 1..200)) {
        let (rules, settings) = (both(), Settings::default());
        let windows: Vec<PairedWindow> = (0u64..).zip(&kinds).filter_map(|(index, kind)| match kind {
            0 => Some(bad(index)),
            1 => Some(invalid(index)),
            2 => None,
            _ => Some(good(index)),
        }).collect();
        let evidence = fold(windows.clone(), &rules, &settings);
        let stored = serde_json::to_string(&evidence).expect("it is data");
        let read: Evidence = serde_json::from_str(&stored).expect("we wrote it");
        prop_assert_eq!(&read, &evidence);
        let replayed = windows.iter().fold(read, |evidence, window| evidence.push(window, &rules, &settings));
        prop_assert_eq!(replayed, evidence);
    }

    #[test]
    fn invalid_windows_cast_no_vote(count in 1u64..300) {
        let judgement = judged((0..count).map(invalid), &both());
        prop_assert_eq!(judgement.verdict, Outcome::NoVerdict);
        prop_assert!(judgement.rules.iter().all(|state| state.votes_good + state.votes_bad == 0));
    }

    #[test]
    fn whatever_is_stored_nothing_panics(letters in "\\PC*", index in any::<u64>()) {
        let recent: Recent = serde_json::from_value(serde_json::Value::from(letters)).expect("a text");
        let evidence = Evidence { recent, newest: Some(index / 2), ..Evidence::default() };
        let evidence = evidence.push(&good(index), &both(), &Settings { window_seconds: 0, ..Settings::default() });
        let _ = judge(&evidence, &both(), &Settings::default(), index);
    }
}
