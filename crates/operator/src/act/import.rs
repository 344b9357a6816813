//! Brings blue's rewritten definitions to green. The secrets are put back last, right before they are sent.

use super::broker::failed;
use crate::body::{Memory, Scene};
use crate::broker_link::{BrokerLink, chance};
use crate::error::ActError;
use decide::fact::Fact;
use decide::rewrites::Rewritten;
use decide::side::Side;
use rabbit::seal::{SealBook, unseal};
use std::fmt;
use std::sync::Arc;

/// Blue's definitions, ready for green: sealed.
pub struct Prepared {
    /// Digest of the export and of what decided about the rewrites.
    pub source: [u8; 32],
    /// What the seals stand for. In memory only.
    pub seals: SealBook,
    /// The document for green, seals in it, and what was changed.
    pub rewritten: Rewritten,
    /// The same document with marks instead of seals, for comparing.
    pub wanted: Vec<u8>,
}

/// Blue's definitions and what became of their last import.
#[derive(Default)]
pub struct Import {
    key: Option<[u8; 32]>,
    prepared: Option<Arc<Prepared>>,
    error: Option<String>,
    imported: Option<String>,
}

impl fmt::Debug for Import {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Import").field("imported", &self.imported).finish_non_exhaustive()
    }
}

impl Import {
    /// The key of the marks that stand for secrets in a comparison; made at the first use.
    pub fn key(&mut self) -> rabbit::Result<[u8; 32]> {
        if let Some(key) = self.key {
            return Ok(key);
        }
        let key = chance()?;
        self.key = Some(key);
        Ok(key)
    }

    /// What was prepared last, if it was from `source`.
    pub fn prepared_from(&self, source: [u8; 32]) -> Option<Arc<Prepared>> {
        self.prepared.as_ref().filter(|prepared| prepared.source == source).cloned()
    }

    /// Keeps what was prepared; a failure of an earlier document is history.
    pub fn keep(&mut self, prepared: Prepared) -> Arc<Prepared> {
        let digest = |prepared: &Prepared| prepared.rewritten.digest.clone();
        if self.prepared.as_deref().map(digest) != Some(digest(&prepared)) {
            self.error = None;
        }
        let prepared = Arc::new(prepared);
        self.prepared = Some(Arc::clone(&prepared));
        prepared
    }

    /// Why the last import failed.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Digest of what was imported last since we started and not seen on green yet.
    pub fn imported(&self) -> Option<&str> {
        self.imported.as_deref()
    }

    /// Green holds what was imported, or is another one: what differs from now on is imported again.
    pub fn forget_imported(&mut self) {
        self.imported = None;
    }
}

/// Imports what was seen last, in phases. Idempotent; a refusal or a cut leaves what was sent before, and the
/// next import sends it all again. The next pass reads and compares anew.
pub async fn import(_scene: &Scene<'_>, memory: &mut Memory) -> Result<(), ActError> {
    let Some(prepared) = memory.import.prepared.clone() else {
        return Err(ActError::Missing { what: "a reading of blue's definitions".to_owned() });
    };
    memory.read_at.remove(&Fact::Definitions);
    match send(memory, &prepared).await {
        Ok(()) => {
            memory.import.error = None;
            memory.import.imported = Some(prepared.rewritten.digest.clone());
            permit_everywhere(memory).await.map_err(failed("permit ourselves in the vhosts", Side::Green))
        }
        Err(error) => {
            memory.import.error = Some(error.report());
            Err(failed("import definitions", Side::Green)(error))
        }
    }
}

async fn send(memory: &mut Memory, prepared: &Prepared) -> rabbit::Result<()> {
    let document = Arc::new(unseal(&prepared.rewritten.document, &prepared.seals)?);
    let link = memory.link(Side::Green);
    let imported = link.ask_long(|client| {
        let document = Arc::clone(&document);
        async move { rabbit::definitions::import(&client, &document).await }
    });
    for phase in imported.await? {
        tracing::debug!(phase = ?phase.phase, objects = phase.objects, "imported");
    }
    start_vhosts(link).await
}

/// An import that was cut off may have left vhosts that are there and do not run.
async fn start_vhosts(link: &BrokerLink) -> rabbit::Result<()> {
    link.ask_long(|client| async move {
        for vhost in client.vhosts().await? {
            client.start_vhost(&vhost).await?;
        }
        Ok(())
    })
    .await
}

/// Lets our user work in the vhosts that came with the import, where it is established.
async fn permit_everywhere(memory: &mut Memory) -> rabbit::Result<()> {
    let link = memory.link(Side::Green);
    if link.epoch_user().is_none() {
        return Ok(());
    }
    for vhost in link.ask(|client| async move { client.vhosts().await }).await? {
        link.permit(&vhost.name).await?;
    }
    Ok(())
}
