//! Export and import of definitions as bytes.

use reqwest::Method;

use super::http::Client;
use crate::error::{Error, Result};
use crate::seal;

impl Client {
    /// Exports all definitions, byte for byte as the broker wrote them. **Holds secrets**: seal it before
    /// anything else sees it. Tag: `administrator`. Changes nothing.
    pub async fn export_definitions(&self) -> Result<Vec<u8>> {
        self.export("definitions", &["api", "definitions"]).await
    }

    /// Exports the definitions of one vhost (no users, no permissions). Tag: `administrator`. Changes nothing.
    pub async fn export_vhost_definitions(&self, vhost: &str) -> Result<Vec<u8>> {
        self.export(&format!("definitions of vhost {vhost}"), &["api", "definitions", vhost]).await
    }

    async fn export(&self, object: &str, segments: &[&str]) -> Result<Vec<u8>> {
        let read = async { self.send(self.bulk_call(Method::GET, segments)).await?.success() };
        let answer = read.await.map_err(|cause| Error::Read { object: object.to_owned(), cause })?;
        Ok(answer.body)
    }

    /// Imports a (partial) definitions document. Tag: `administrator`. **Not atomic**: what came before a
    /// refused object stays; success (204) does not mean that everything is there, so read back. Objects
    /// that exist stay as they are. Shovels and upstreams start at once. A cut leaves any part imported;
    /// importing again is safe.
    pub async fn import_definitions(&self, document: &[u8]) -> Result<()> {
        self.import("definitions", document).await
    }

    /// As [`Client::import_definitions`]; `object` names the part in errors.
    pub(crate) async fn import(&self, object: &str, document: &[u8]) -> Result<()> {
        let segments = ["api", "definitions"];
        let import = async {
            let mut call = self.bulk_call(Method::POST, &segments);
            call.body = Some(document.to_vec());
            let answer = self.send(call).await?;
            if answer.status.is_success() {
                return Ok(());
            }
            // The broker quotes what it refuses; what it quotes must not be a secret of the document.
            let secrets = seal::secrets_in(document);
            let secrets: Vec<&str> = secrets.iter().map(crate::Secret::expose).collect();
            answer.success_without(&secrets).map(drop)
        };
        import.await.map_err(|cause| Error::Import { object: object.to_owned(), cause })
    }
}
