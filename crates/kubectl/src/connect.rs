//! The connection to the cluster, with the context, kubeconfig and namespace that kubectl would use.

use crate::arguments::Target;
use crate::error::Error;
use api::RabbitMQMigration;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};

/// The migrations of one namespace.
pub struct Migrations {
    /// The API.
    pub api: Api<RabbitMQMigration>,
    /// The namespace.
    pub namespace: String,
}

/// Connects as `target` says.
pub async fn connect(target: &Target) -> Result<Migrations, Error> {
    let config = config(target).await?;
    let namespace = target.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = Client::try_from(config).map_err(|e| Error::Connect { source: Box::new(e) })?;
    Ok(Migrations { api: Api::namespaced(client, &namespace), namespace })
}

async fn config(target: &Target) -> Result<Config, Error> {
    let options = KubeConfigOptions { context: target.context.clone(), ..KubeConfigOptions::default() };
    let file = |e: kube::config::KubeconfigError| Error::Configure { source: Box::new(e) };
    match (&target.kubeconfig, &target.context) {
        (Some(path), _) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(file)?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(file)
        }
        (None, Some(_)) => Config::from_kubeconfig(&options).await.map_err(file),
        // Like kubectl also from within a pod.
        (None, None) => Config::infer().await.map_err(|e| Error::Configure { source: Box::new(e) }),
    }
}
