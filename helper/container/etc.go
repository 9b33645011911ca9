package container

import "os"

// copiedMax is the largest file of /etc that is copied, in bytes.
const copiedMax = 256 << 10

// etcShared is what of the host's /etc a sandbox sees, read-only: what
// compilers, loaders and runtimes look up. No shadow, no keys, no machine-id,
// nothing an administrator may have written a secret into.
var etcShared = []string{
	"alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts", "gai.conf",
	"host.conf", "inputrc", "java", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "java-25-openjdk", "ld.so.cache", "ld.so.conf",
	"ld.so.conf.d", "locale.alias", "localtime", "lsb-release", "magic", "mime.types", "os-release", "perl", "pki/ca-trust",
	"pki/tls/certs", "protocols", "python3", "python3.11", "python3.12", "python3.13", "rpc", "services", "ssl/certs",
	"ssl/openssl.cnf", "terminfo", "timezone",
}

// etcOwn is what a sandbox has instead of the host's.
var etcOwn = map[string]string{
	"passwd": "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n" +
		"sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/sh\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	"group":         "root:x:0:\ntty:x:5:\nsandbox:x:1000:\nnogroup:x:65534:\n",
	"hosts":         "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost\n",
	"hostname":      "sandbox\n",
	"resolv.conf":   "# this sandbox has no name server\n",
	"nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\nnetworks: files\n",
}

func (v view) etc() error {
	for name, content := range etcOwn {
		if err := v.file("/etc/"+name, content); err != nil {
			return err
		}
	}
	for _, name := range etcShared {
		if err := v.snapshot("/etc/" + name); err != nil {
			return err
		}
	}
	return nil
}

// snapshot shows a host path as it is now. A file is copied: a bind would pin the
// inode and grow stale all the same, and each mount costs every cell.
// What not everybody may read keeps its own permissions.
func (v view) snapshot(path string) error {
	st, err := os.Lstat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > copiedMax || st.Mode().Perm()&0o004 == 0 {
		return v.same(path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return v.file(path, string(b))
}
