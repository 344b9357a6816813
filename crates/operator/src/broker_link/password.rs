//! Passwords by chance, for users of our own. They live in memory only.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rabbit::{Cause, Error, Secret};

/// Bytes of chance. 24: 192 bits, without padding in base64.
const BYTES: usize = 24;

/// Makes a password. Fails only where the system has no chance to give.
pub fn password() -> rabbit::Result<Secret> {
    let bytes = chance::<BYTES>()?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

/// Bytes by chance, from the provider that TLS uses as well.
pub fn chance<const N: usize>() -> rabbit::Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = rustls::crypto::aws_lc_rs::default_provider().secure_random.fill(&mut bytes);
    let cause = Cause::Malformed("the system gives no random bytes".to_owned());
    filled.map_err(|_| Error::Seal { attempt: "make a key for", cause })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_long_and_never_the_same() {
        let (one, other) = (password().unwrap(), password().unwrap());
        assert_eq!(one.expose().len(), 32);
        assert_ne!(one, other);
    }
}
