//! What is built, and the key under which a build is cached: the hash of everything it is made from.

use sha2::{Digest, Sha256};

/// The version of Kubernetes; the go.mod file says the same.
pub const KUBERNETES: (&str, &str, &str) = ("v1.34.4", "1", "34");

/// A set of Go programs with one module file.
#[derive(Debug)]
pub struct GoSet {
    /// Its name, for progress lines and directories.
    pub name: &'static str,
    /// The files of the main module.
    pub files: &'static [(&'static str, &'static str)],
    /// The packages to build, each with the name its program gets.
    pub programs: &'static [(&'static str, &'static str)],
}

/// Kubernetes and etcd.
pub const CLUSTER: GoSet = GoSet {
    name: "kubernetes",
    files: &[
        ("go.mod", include_str!("../go/cluster/go.mod")),
        ("go.sum", include_str!("../go/cluster/go.sum")),
    ],
    programs: &[
        ("go.etcd.io/etcd/server/v3", "etcd"),
        ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
        ("k8s.io/kubernetes/cmd/kube-controller-manager", "kube-controller-manager"),
        ("k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"),
        ("k8s.io/kubernetes/cmd/kubelet", "kubelet"),
        ("k8s.io/kubernetes/cmd/kube-proxy", "kube-proxy"),
        ("k8s.io/kubernetes/cmd/kubectl", "kubectl"),
    ],
};

/// CoreDNS with only the plugins that the lab uses.
pub const DNS: GoSet = GoSet {
    name: "coredns",
    files: &[
        ("go.mod", include_str!("../go/dns/go.mod")),
        ("go.sum", include_str!("../go/dns/go.sum")),
        ("main.go", include_str!("../go/dns/main.go")),
    ],
    programs: &[("dns", "coredns")],
};

/// All sets.
pub const GO_SETS: [&GoSet; 2] = [&DNS, &CLUSTER];

impl GoSet {
    /// The linker's flags: without a version clients cannot parse what Kubernetes says of itself.
    pub fn linker_flags() -> String {
        let (version, major, minor) = KUBERNETES;
        let package = "k8s.io/component-base/version";
        format!(
            "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
        )
    }

    /// The directory of this build in the cache.
    pub fn directory(&self) -> String {
        let flags = Self::linker_flags();
        let files = self.files.iter().flat_map(|(name, text)| [*name, *text]);
        let programs = self.programs.iter().flat_map(|(package, program)| [*package, *program]);
        format!("{}-{}", self.name, key(files.chain(programs).chain([flags.as_str()])))
    }
}

/// An image that is made from Debian packages.
#[derive(Debug)]
pub struct RabbitImage {
    /// The version of RabbitMQ that the suite has.
    pub version: &'static str,
    /// Debian's suite.
    pub suite: &'static str,
}

/// The two brokers: blue and green.
pub const RABBIT_IMAGES: [RabbitImage; 2] =
    [RabbitImage { version: "3.10.8", suite: "bookworm" }, RabbitImage { version: "4.0.5", suite: "trixie" }];
/// The pause image, of busybox.
pub const PAUSE_IMAGE: &str = "registry.local/pause:1";
/// The start script of the brokers' images.
pub const ENTRYPOINT: &str = include_str!("../files/docker-entrypoint.sh");
/// Gives user and group `rabbitmq` the official image's number before the package would choose its own.
pub const ESSENTIAL_HOOK: &str = include_str!("../files/essential-hook.sh");
/// Finishes the root file system to the official image's layout.
pub const CUSTOMIZE_HOOK: &str = include_str!("../files/customize-hook.sh");

impl RabbitImage {
    /// The image's name.
    pub fn name(&self) -> String {
        format!("registry.local/rabbitmq:{}", self.version)
    }

    /// The image's file in the cache.
    pub fn file(&self) -> String {
        let parts = [self.version, self.suite, ENTRYPOINT, ESSENTIAL_HOOK, CUSTOMIZE_HOOK, IMAGE_FORMAT];
        format!("rabbitmq-{}-{}.tar", self.version, key(parts))
    }
}

/// Changes when the way images are packed changes, so that old ones are not taken for new.
pub const IMAGE_FORMAT: &str = "1";

/// A short hash of texts; their borders count.
pub fn key<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize()).chars().take(12).collect()
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_on_each_part_and_on_where_parts_end() {
        assert_eq!(key(["a", "b"]), key(["a", "b"]));
        assert_ne!(key(["a", "b"]), key(["b", "a"]));
        assert_ne!(key(["ab", "c"]), key(["a", "bc"]));
        assert_eq!(key(["a"]).len(), 12);
    }

    #[test]
    fn the_version_in_the_flags_is_the_one_in_the_module_file() {
        let (_, module) = CLUSTER.files[0];
        assert!(module.contains(&format!("k8s.io/kubernetes {}", KUBERNETES.0)));
    }
}
