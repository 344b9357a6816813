//! Users, permissions, topic permissions.

use std::collections::BTreeMap;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::http::Client;
use super::json as field;
use crate::error::Result;
use crate::secret::Secret;

/// Who this client is to the broker.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WhoAmI {
    /// User name.
    pub name: String,
    /// User tags.
    #[serde(default, deserialize_with = "field::tags")]
    pub tags: Vec<String>,
}

/// One user of the internal backend; his hash is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct User {
    /// User name.
    pub name: String,
    /// User tags.
    #[serde(default, deserialize_with = "field::tags")]
    pub tags: Vec<String>,
    /// Limits by name; empty: none set, or a broker that does not list them here.
    #[serde(default, deserialize_with = "field::limits")]
    pub limits: BTreeMap<String, i64>,
    /// Whether he can log in with a password; `false` for shadow records. `None`: not said.
    #[serde(default, rename = "password_hash", deserialize_with = "has_text")]
    pub has_password: Option<bool>,
}

/// How a user proves himself.
#[derive(Debug, Clone)]
pub enum Password {
    /// A password in clear; the broker hashes it.
    Clear(Secret),
    /// A hash as exported, with its algorithm.
    Hash {
        /// `password_hash` of the export.
        hash: Secret,
        /// `hashing_algorithm` of the export; without it the node's default is assumed.
        algorithm: Option<String>,
    },
    /// No password login: the shadow record that fences an external user.
    None,
}

/// What a user may do in one vhost; regular expressions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// User name.
    pub user: String,
    /// Virtual host.
    pub vhost: String,
    /// May declare and delete.
    pub configure: String,
    /// May publish and bind.
    pub write: String,
    /// May consume and get.
    pub read: String,
}

/// What a user may route through one topic exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicPermission {
    /// User name.
    pub user: String,
    /// Virtual host.
    pub vhost: String,
    /// Topic exchange.
    pub exchange: String,
    /// Routing keys he may publish with.
    pub write: String,
    /// Routing keys he may bind.
    pub read: String,
}

impl Client {
    /// Asks who we are. Any tag. Changes nothing.
    pub async fn whoami(&self) -> Result<WhoAmI> {
        self.get("own user", &["api", "whoami"]).await
    }

    /// Lists users. Tag: `administrator`. Changes nothing.
    pub async fn users(&self) -> Result<Vec<User>> {
        self.list("users", &["api", "users"]).await
    }

    /// Creates or **overwrites** a user. Tag: `administrator`. Idempotent; limits and permissions stay.
    pub async fn put_user(&self, name: &str, password: &Password, tags: &[&str]) -> Result<()> {
        let mut body = json!({ "tags": tags.join(",") });
        match password {
            Password::Clear(password) => body["password"] = Value::from(password.expose()),
            Password::Hash { hash, algorithm } => {
                body["password_hash"] = Value::from(hash.expose());
                if let Some(algorithm) = algorithm {
                    body["hashing_algorithm"] = Value::from(algorithm.as_str());
                }
            }
            Password::None => body["password_hash"] = Value::from(""),
        }
        self.change(&format!("user {name}"), Method::PUT, &["api", "users", name], &body).await
    }

    /// Deletes a user with his permissions and limits; his connections are closed. One that is not there is
    /// fine. Tag: `administrator`.
    pub async fn delete_user(&self, name: &str) -> Result<()> {
        self.remove_slowly(&format!("user {name}"), &["api", "users", name]).await
    }

    /// Lists permissions of all users. Tag: `administrator`. Changes nothing.
    pub async fn permissions(&self) -> Result<Vec<Permissions>> {
        self.list("permissions", &["api", "permissions"]).await
    }

    /// Sets what a user may do in a vhost. Tag: `administrator`. Idempotent.
    pub async fn put_permissions(&self, permissions: &Permissions) -> Result<()> {
        let Permissions { user, vhost, configure, write, read } = permissions;
        let object = format!("permissions of user {user} in vhost {vhost}");
        let body = json!({ "configure": configure, "write": write, "read": read });
        self.change(&object, Method::PUT, &["api", "permissions", vhost, user], &body).await
    }

    /// Sets what a user may route through a topic exchange. Tag: `administrator`. Idempotent.
    pub async fn put_topic_permission(&self, permission: &TopicPermission) -> Result<()> {
        let TopicPermission { user, vhost, exchange, write, read } = permission;
        let object = format!("topic permission of user {user} in vhost {vhost}");
        let body = json!({ "exchange": exchange, "write": write, "read": read });
        self.change(&object, Method::PUT, &["api", "topic-permissions", vhost, user], &body).await
    }
}

/// Whether a string is there and not empty; the string itself is dropped.
fn has_text<'de, D: serde::Deserializer<'de>>(d: D) -> std::result::Result<Option<bool>, D::Error> {
    Ok(Value::deserialize(d)?.as_str().map(|s| !s.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_users_parse_without_their_hashes() {
        let users: Vec<User> = serde_json::from_str(
            r#"[{"name":"guest","password_hash":"MQ2yZBtHBGm8","hashing_algorithm":"rabbit_password_hashing_sha256",
            "tags":["administrator"],"limits":{"max-connections":10}},
            {"name":"ldap-shadow","password_hash":"","tags":"","limits":[]}]"#,
        )
        .unwrap();
        assert_eq!(users[0].limits["max-connections"], 10);
        assert_eq!(users[0].has_password, Some(true));
        assert_eq!(users[1].has_password, Some(false));
        assert!(!format!("{users:?}").contains("MQ2y"));
    }
}
