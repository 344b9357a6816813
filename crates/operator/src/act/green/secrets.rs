//! Green's Secret: administrator, password, Erlang cookie. Made once and never changed: the brokers keep what
//! they were born with.

use super::blueprint::Blueprint;
use super::claims::{check_claims, has_claims};
use crate::act::kubernetes::{Attempt, MANAGER, api, call, check_ours, is_code};
use crate::body::Scene;
use crate::error::ActError;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use rustls::crypto::aws_lc_rs::default_provider;
use serde_json::json;

/// Key of the administrator's name.
pub(super) const USERNAME: &str = "username";
/// Key of his password.
pub(super) const PASSWORD: &str = "password";
/// Key of the Erlang cookie.
pub(super) const COOKIE: &str = "erlang-cookie";
/// Bytes of chance in each secret: 192 bits are 32 characters.
const CHANCE: usize = 24;
const KIND: &str = "Secret";

/// Makes the Secret unless it is there. Refuses another's, and refuses to make one beside claims that already
/// hold a broker's data: those know another password and cookie.
pub(super) async fn ensure(scene: &Scene<'_>, green: &Blueprint<'_>) -> Result<(), ActError> {
    check_claims(scene, green).await?;
    let name = green.secret;
    let api = api::<Secret>(scene);
    let get = Attempt { verb: "get", kind: KIND, name };
    if let Some(found) = call(get, api.get_opt(name)).await? {
        return check_ours(scene, KIND, &found.metadata);
    }
    if has_claims(scene, green).await? {
        return Err(ActError::Missing {
            what: format!("Secret {name}, though claims of {} exist,", green.name),
        });
    }
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    let attempt = Attempt { verb: "create", kind: KIND, name };
    match call(attempt, api.create(&params, &secret(green)?)).await {
        // Somebody was quicker: whose it is decides.
        Err(ActError::Kubernetes { source, .. }) if is_code(&source, 409) => {
            check_ours(scene, KIND, &call(get, api.get(name)).await?.metadata)
        }
        other => other.map(|_| ()),
    }
}

fn secret(green: &Blueprint<'_>) -> Result<Secret, ActError> {
    let object = json!({
        "metadata": green.metadata(green.secret),
        "type": "Opaque",
        // Not `admin`: blue may have a user of that name, whose import would change the password.
        "stringData": { USERNAME: format!("{}-admin", green.name), PASSWORD: chance()?, COOKIE: chance()? },
    });
    serde_json::from_value(object).map_err(|error| {
        Attempt { verb: "write", kind: KIND, name: green.secret }.failed(kube::Error::SerdeError(error))
    })
}

/// A text nobody can guess, of letters, digits, `-` and `_`: safe in URLs, shells and Erlang's command line.
fn chance() -> Result<String, ActError> {
    let mut bytes = [0_u8; CHANCE];
    let filled = default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| ActError::Missing { what: "the operating system's randomness".to_owned() })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_differs_and_is_long() {
        let [a, b] = [chance().unwrap(), chance().unwrap()];
        assert_ne!(a, b);
        assert_eq!(a.len(), 32);
    }
}
