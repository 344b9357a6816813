//! Kubernetes quantities as whole numbers.

/// Suffixes with what they multiply by.
const SUFFIXES: [(&str, u128); 13] = [
    ("", 1),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
];

/// The bytes that a quantity such as `1.5Gi` or `2e9` means; `None` where it is none.
pub(super) fn bytes(quantity: &str) -> Option<u64> {
    let quantity = quantity.trim();
    let end = quantity.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(quantity.len());
    let (number, suffix) = quantity.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mantissa: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    u64::try_from(mantissa.checked_mul(multiplier(suffix)?)? / scale).ok()
}

fn multiplier(suffix: &str) -> Option<u128> {
    let known = SUFFIXES.iter().find_map(|(known, by)| (*known == suffix).then_some(*by));
    known.or_else(|| 10_u128.checked_pow(suffix.strip_prefix(['e', 'E'])?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read() {
        let cases = [
            ("64Gi", Some(64 << 30)),
            ("1.5Gi", Some(1_610_612_736)),
            ("500M", Some(500_000_000)),
            ("2e3", Some(2000)),
            ("7E", Some(7_000_000_000_000_000_000)),
            ("1024", Some(1024)),
            ("", None),
            ("Gi", None),
            ("1Xi", None),
            ("-1", None),
        ];
        for (text, want) in cases {
            assert_eq!(bytes(text), want, "{text:?}");
        }
    }
}
