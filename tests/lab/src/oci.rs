//! Makes image archives (OCI layout in a tar) of one layer.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{Attempt, Result};
use crate::recipe::hex;
use crate::tar;

/// What an image is, besides its files.
#[derive(Debug, Default)]
pub struct Image {
    /// Its name with tag.
    pub name: String,
    /// The program a container starts.
    pub entrypoint: Vec<String>,
    /// The program's arguments unless the pod gives others.
    pub arguments: Vec<String>,
    /// Environment, as NAME=VALUE.
    pub environment: Vec<String>,
}

/// A blob of the layout: its digest and size.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Blob {
    digest: String,
    size: u64,
}

/// Writes the archive of an image whose one layer is the given tar.
pub fn write(image: &Image, layer: &Path, out: &Path) -> Result<()> {
    let layer_blob = digest_of_file(layer)?;
    let config = config(image, &layer_blob).to_string();
    let manifest = manifest(&digest(config.as_bytes()), &layer_blob).to_string();
    let index = index(&image.name, &digest(manifest.as_bytes())).to_string();
    let file = File::create(out).attempt(|| format!("create {}", out.display()))?;
    let mut archive = tar::Writer::new(BufWriter::new(file));
    add(&mut archive, "oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    add(&mut archive, "index.json", &index)?;
    archive.directory("blobs")?;
    archive.directory("blobs/sha256")?;
    for text in [&config, &manifest] {
        add(&mut archive, &blob_path(&digest(text.as_bytes())), text)?;
    }
    let content = File::open(layer).attempt(|| format!("open {}", layer.display()))?;
    archive.file(&blob_path(&layer_blob), 0o644, layer_blob.size, BufReader::new(content))?;
    archive.finish().map(drop)
}

/// Writes a layer with one executable file.
pub fn write_single_file_layer(program: &Path, path_in_image: &str, out: &Path) -> Result<()> {
    let content = File::open(program).attempt(|| format!("open {}", program.display()))?;
    let size = content.metadata().attempt(|| format!("look at {}", program.display()))?.len();
    let file = File::create(out).attempt(|| format!("create {}", out.display()))?;
    let mut layer = tar::Writer::new(BufWriter::new(file));
    if let Some((directory, _)) =
        path_in_image.rsplit_once('/').filter(|(directory, _)| !directory.is_empty())
    {
        layer.directory(directory)?;
    }
    layer.file(path_in_image, 0o755, size, BufReader::new(content))?;
    layer.finish().map(drop)
}

fn add<W: Write>(archive: &mut tar::Writer<W>, name: &str, text: &str) -> Result<()> {
    archive.file(name, 0o644, digest(text.as_bytes()).size, text.as_bytes())
}

fn config(image: &Image, layer: &Blob) -> Value {
    json!({
        "architecture": architecture(),
        "os": "linux",
        "config": { "Entrypoint": image.entrypoint, "Cmd": image.arguments, "Env": image.environment },
        "rootfs": { "type": "layers", "diff_ids": [layer.digest] },
    })
}

fn manifest(config: &Blob, layer: &Blob) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", layer)],
    })
}

fn index(name: &str, manifest: &Blob) -> Value {
    let mut entry = descriptor("application/vnd.oci.image.manifest.v1+json", manifest);
    let tag = name.rsplit_once(':').map_or("latest", |(_, tag)| tag);
    entry["annotations"] =
        json!({ "io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag });
    json!({ "schemaVersion": 2, "manifests": [entry] })
}

fn descriptor(media_type: &str, blob: &Blob) -> Value {
    json!({ "mediaType": media_type, "digest": blob.digest, "size": blob.size })
}

/// The machine's architecture as images name it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn blob_path(blob: &Blob) -> String {
    format!("blobs/{}", blob.digest.replace(':', "/"))
}

fn digest(bytes: &[u8]) -> Blob {
    Blob { digest: format!("sha256:{}", hex(&Sha256::digest(bytes))), size: length(bytes) }
}

/// A length as sizes are written; no slice is longer than 64 bits can say.
fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn digest_of_file(path: &Path) -> Result<Blob> {
    let mut file = File::open(path).attempt(|| format!("open {}", path.display()))?;
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        let read = file.read(&mut buffer).attempt(|| format!("read {}", path.display()))?;
        let Some(part) = buffer.get(..read).filter(|part| !part.is_empty()) else { break };
        hash.update(part);
        size += length(part);
    }
    Ok(Blob { digest: format!("sha256:{}", hex(&hash.finalize())), size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_names_the_image_for_containerd() {
        let blob = digest(b"x");
        let index = index("registry.local/x:dev", &blob);
        let entry = &index["manifests"][0];
        assert_eq!(entry["annotations"]["io.containerd.image.name"], "registry.local/x:dev");
        assert_eq!(entry["annotations"]["org.opencontainers.image.ref.name"], "dev");
        assert_eq!(entry["digest"], blob.digest);
    }

    #[test]
    fn manifest_and_config_point_at_the_layer() {
        let (layer, other) = (digest(b"layer"), digest(b"config"));
        let image = Image { entrypoint: vec!["/x".into()], ..Image::default() };
        assert_eq!(config(&image, &layer)["rootfs"]["diff_ids"][0], layer.digest);
        let manifest = manifest(&other, &layer);
        assert_eq!(manifest["layers"][0]["digest"], layer.digest);
        assert_eq!(manifest["layers"][0]["size"], 5);
        assert_eq!(manifest["config"]["digest"], other.digest);
    }
}
