//! The lab's certificates and the kubeconfigs made of them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use serde_json::json;

use crate::error::{Attempt, Error, Result};
use crate::paths;
use crate::topology::{API_SERVICE_ADDRESS, API_URL, CONTROL_ADDRESS, NODES};

/// Written last: says that all others are there.
const COMPLETE: &str = "complete";

/// Someone with a certificate.
struct Party {
    /// The name of its files.
    file: String,
    /// The name Kubernetes knows it by.
    user: String,
    /// The group Kubernetes puts it in.
    group: Option<&'static str>,
    /// The names and addresses it serves under.
    serves: Vec<String>,
}

/// Makes all keys, certificates and kubeconfigs unless they are there.
pub fn ensure() -> Result<()> {
    let directory = paths::pki();
    if directory.join(COMPLETE).exists() {
        return Ok(());
    }
    fs::create_dir_all(&directory).attempt(|| format!("make {}", directory.display()))?;
    let authority = make_authority(&directory)?;
    make_service_account_keys(&directory)?;
    for party in parties() {
        make_certificate(&directory, &authority, &party)?;
    }
    write(&directory.join(COMPLETE), "")
}

fn parties() -> Vec<Party> {
    let client = |file: &str, user: &str, group| Party {
        file: file.into(),
        user: user.into(),
        group,
        serves: Vec::new(),
    };
    let service = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ];
    let addresses = [CONTROL_ADDRESS, API_SERVICE_ADDRESS, "127.0.0.1", "localhost"];
    let mut parties = vec![
        Party {
            serves: service.into_iter().chain(addresses).map(str::to_owned).collect(),
            ..client("apiserver", "kube-apiserver", None)
        },
        client("admin", "admin", Some("system:masters")),
        client("controller-manager", "system:kube-controller-manager", None),
        client("scheduler", "system:kube-scheduler", None),
        client("proxy", "system:kube-proxy", None),
        client("coredns", "coredns", None),
        client("apiserver-kubelet", "apiserver-kubelet", Some("system:masters")),
    ];
    parties.extend(NODES.map(|node| Party {
        serves: vec![node.address(), node.name.into()],
        ..client(node.name, &format!("system:node:{}", node.name), Some("system:nodes"))
    }));
    parties
}

fn make_authority(directory: &Path) -> Result<Issuer<'static, KeyPair>> {
    let failed = |source| Error::Certificate { name: "the lab's authority".into(), source };
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "lab-ca");
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    write(&directory.join("ca.crt"), &certificate.pem())?;
    Ok(Issuer::new(params, key))
}

fn make_service_account_keys(directory: &Path) -> Result<()> {
    let name = "service accounts".to_owned();
    let key = KeyPair::generate().map_err(|source| Error::Certificate { name, source })?;
    write(&directory.join("service-accounts.key"), &key.serialize_pem())?;
    write(&directory.join("service-accounts.pub"), &key.public_key_pem())
}

fn make_certificate(directory: &Path, authority: &Issuer<'static, KeyPair>, party: &Party) -> Result<()> {
    let failed = |source| Error::Certificate { name: party.file.clone(), source };
    let mut params = CertificateParams::new(party.serves.clone()).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, party.user.as_str());
    if let Some(group) = party.group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.signed_by(&key, authority).map_err(failed)?;
    write(&directory.join(format!("{}.crt", party.file)), &certificate.pem())?;
    write(&directory.join(format!("{}.key", party.file)), &key.serialize_pem())?;
    let target = match party.file.as_str() {
        "admin" => paths::kubeconfig(),
        file => directory.join(format!("{file}.kubeconfig")),
    };
    write(&target, &kubeconfig(directory, &party.file)?)
}

/// A kubeconfig in JSON (which is YAML), with everything inside: it can be copied and mounted.
fn kubeconfig(directory: &Path, party: &str) -> Result<String> {
    let read = |name: String| {
        let path = directory.join(name);
        let bytes = fs::read(&path).attempt(|| format!("read {}", path.display()))?;
        Ok::<_, Error>(STANDARD.encode(&bytes))
    };
    let cluster = json!({ "server": API_URL, "certificate-authority-data": read("ca.crt".into())? });
    let user = json!({
        "client-certificate-data": read(format!("{party}.crt"))?,
        "client-key-data": read(format!("{party}.key"))?,
    });
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "lab", "cluster": cluster }],
        "users": [{ "name": party, "user": user }],
        "contexts": [{ "name": "lab", "context": { "cluster": "lab", "user": party } }],
        "current-context": "lab",
    });
    Ok(format!("{config:#}\n"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    let attempt = || format!("write {}", path.display());
    let mut options = fs::OpenOptions::new();
    let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(path).attempt(attempt)?;
    file.write_all(text.as_bytes()).attempt(attempt)
}
