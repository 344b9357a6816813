//! The administrator's credentials of a side. They go to the link, never into the world.

use super::{Answer, api, call, reading};
use crate::body::{Memory, Scene};
use ::api::spec::CredentialsSecret;
use decide::side::Side;
use decide::world::Reading;
use k8s_openapi::api::core::v1::Secret;
use rabbit::Credentials;

/// Reads the Secret of a side and hands the credentials to its link; the reading only says that they are
/// there.
pub async fn credentials(scene: &Scene<'_>, memory: &mut Memory, side: Side) -> Reading<()> {
    let wanted = &scene.plan.broker(side).credentials_secret;
    let answer = read(scene, wanted).await;
    reading(answer.map(|credentials| memory.link(side).set_admin(credentials)))
}

async fn read(scene: &Scene<'_>, wanted: &CredentialsSecret) -> Answer<Credentials> {
    let name = &wanted.name;
    let secret = call(&format!("get secret {name}"), api::<Secret>(scene).get_opt(name)).await?;
    let secret = secret.ok_or_else(|| format!("Secret {name} does not exist"))?;
    let username = match (&wanted.username, &wanted.username_key) {
        (Some(username), None) => username.clone(),
        (None, Some(key)) => text(&secret, name, key)?,
        (Some(_), Some(_)) | (None, None) => {
            return Err(format!("set exactly one of username, usernameKey for Secret {name}"));
        }
    };
    Ok(Credentials::new(username, text(&secret, name, &wanted.password_key)?))
}

/// The text under `key`. No error shows a value.
fn text(secret: &Secret, name: &str, key: &str) -> Answer<String> {
    let bytes = secret.data.as_ref().and_then(|data| data.get(key));
    let bytes = bytes.ok_or_else(|| format!("Secret {name} has no key {key}"))?;
    match std::str::from_utf8(&bytes.0) {
        Ok("") => Err(format!("Secret {name} has nothing under key {key}")),
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(format!("Secret {name} has no text under key {key}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;

    fn secret(pairs: &[(&str, &[u8])]) -> Secret {
        let data = pairs.iter().map(|(k, v)| ((*k).to_owned(), ByteString(v.to_vec()))).collect();
        Secret { data: Some(data), ..Secret::default() }
    }

    #[test]
    fn a_missing_key_is_named_and_no_value_is_shown() {
        let secret = secret(&[("password", b"hunter2"), ("empty", b""), ("binary", &[0xff])]);
        assert_eq!(text(&secret, "s", "password").as_deref(), Ok("hunter2"));
        assert_eq!(text(&secret, "s", "user").unwrap_err(), "Secret s has no key user");
        assert_eq!(text(&secret, "s", "empty").unwrap_err(), "Secret s has nothing under key empty");
        assert_eq!(text(&secret, "s", "binary").unwrap_err(), "Secret s has no text under key binary");
    }
}
