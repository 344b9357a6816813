//! Feature flags: list, enable.

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::http::Client;
use crate::error::Result;

/// One feature flag.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FeatureFlag {
    /// Its name.
    pub name: String,
    /// `enabled`, `disabled`, `unavailable` or `state_changing`.
    pub state: String,
    /// `stable`, `required` or `experimental`.
    #[serde(default)]
    pub stability: String,
}

impl FeatureFlag {
    /// Whether it is on.
    pub fn is_enabled(&self) -> bool {
        self.state == "enabled"
    }

    /// Whether it should be on but is not: stable and disabled. Experimental flags are never counted.
    pub fn is_missing(&self) -> bool {
        self.state == "disabled" && self.stability != "experimental"
    }
}

impl Client {
    /// Lists feature flags. Tag: `administrator` (3.10; `monitoring` later). Changes nothing.
    pub async fn feature_flags(&self) -> Result<Vec<FeatureFlag>> {
        self.get("feature flags", &["api", "feature-flags"]).await
    }

    /// Enables one flag on the whole cluster. Tag: `administrator`. **Cannot be undone**; idempotent.
    pub async fn enable_feature_flag(&self, name: &str) -> Result<()> {
        let object = format!("feature flag {name}");
        let segments = ["api", "feature-flags", name, "enable"];
        self.change_slowly(&object, Method::PUT, &segments, &json!({ "name": name })).await
    }

    /// Enables every stable flag that is disabled and returns their names. Tag: `administrator`.
    /// **Cannot be undone**. Stops at the first refusal; a cut leaves some enabled.
    pub async fn enable_stable_feature_flags(&self) -> Result<Vec<String>> {
        let mut enabled = Vec::new();
        for flag in self.feature_flags().await?.into_iter().filter(FeatureFlag::is_missing) {
            self.enable_feature_flag(&flag.name).await?;
            enabled.push(flag.name);
        }
        Ok(enabled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_disabled_stable_flags_are_missing() {
        let flags: Vec<FeatureFlag> = serde_json::from_str(
            r#"[{"name":"user_limits","desc":"","state":"disabled","stability":"stable","provided_by":"rabbit"},
            {"name":"khepri_db","state":"disabled","stability":"experimental"},
            {"name":"quorum_queue","state":"enabled","stability":"required"},
            {"name":"x","state":"unavailable","stability":"stable"}]"#,
        )
        .unwrap();
        let missing: Vec<_> = flags.iter().filter(|f| f.is_missing()).map(|f| f.name.as_str()).collect();
        assert_eq!(missing, ["user_limits"]);
        assert!(flags[2].is_enabled());
    }
}
