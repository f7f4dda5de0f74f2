// Tests of .ci/release, in a repository that has the shape of this one and builds in moments.

package command

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
)

const releaseScript = "../../../.ci/release"

// small is the repository: what .ci/release reads of this one. Its kith prints of its version what ours does.
var small = map[string]string{
	"go.mod": "module github.com/kith-io/kith\n\ngo 1.25.0\n",
	"cmd/kith/main.go": `package main

import (
	"fmt"
	"runtime/debug"
)

func main() {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			fmt.Printf("{\"version\":%q,\"commit\":%q}\n", info.Main.Version, s.Value)
		}
	}
}
`,
	"cmd/loadgen/main.go":   "package main\n\nfunc main() {}\n",
	"codec/protobuf/go.mod": nestedModule("codec/protobuf", "../.."),
	"durable/cron/go.mod":   nestedModule("durable/cron", "../.."),
	"lease/etcd/go.mod":     nestedModule("lease/etcd", "../.."),
	"lease/postgres/go.mod": nestedModule("lease/postgres", "../.."),
	"otel/go.mod":           nestedModule("otel", ".."),
	"quorum/pebble/go.mod":  nestedModule("quorum/pebble", "../.."),
	"store/etcd/go.mod":     nestedModule("store/etcd", "../.."),
	"store/postgres/go.mod": nestedModule("store/postgres", "../.."),
	"store/sqlite/go.mod":   nestedModule("store/sqlite", "../.."),
	"bench/peers/go.mod":    "module github.com/kith-io/kith/bench/peers\n\nrequire github.com/kith-io/kith v0.0.0\n",
	"LICENSE":               "a licence\n",
	"NOTICE":                "a notice\n",
	"api.txt":               "kith: func A()\nkith: func B()\n",
	".gitignore":            "/dist/\n",
	"docs/compatibility.md": "Releases are tagged.\n",
	"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## v0.1.0 - 2026-01-02\n\n### Added\n- The first `entry`.\n\n" +
		"## v0.0.9 - 2026-01-01\n- Older.\n",
}

func nestedModule(path, root string) string {
	return "module github.com/kith-io/kith/" + path + "\n\nrequire (\n\tgithub.com/kith-io/kith v0.1.0 // us\n)\n\n" +
		"replace github.com/kith-io/kith => " + root + "\n"
}

// checkout is such a repository on disk.
type checkout struct {
	t   *testing.T
	dir string
}

const anyCode = -1

// run runs a program in it, which must end with the exit code, and returns all that it printed.
func (c checkout) run(code int, name string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@example.com", "GOFLAGS=-buildvcs=false", "GOPROXY=off", "GOTOOLCHAIN=local")
	out, _ := cmd.CombinedOutput()
	require.NotNil(c.t, cmd.ProcessState, name)
	if code == anyCode {
		code = cmd.ProcessState.ExitCode()
	}
	require.Equal(c.t, code, cmd.ProcessState.ExitCode(), "%s %q: %s", name, args, out)
	return string(out)
}

func (c checkout) git(args ...string) string { c.t.Helper(); return c.run(0, "git", args...) }

func (c checkout) release(code int, args ...string) string {
	c.t.Helper()
	return c.run(code, "bash", append([]string{".ci/release"}, args...)...)
}

// write puts a text into a file, and commit commits all files.
func (c checkout) write(path, text string) {
	c.t.Helper()
	path = filepath.Join(c.dir, path)
	require.NoError(c.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(c.t, os.WriteFile(path, []byte(text), 0o644))
}

func (c checkout) commit() {
	c.t.Helper()
	c.git("add", "-A")
	c.git("commit", "-qm", "a change")
}

// edit replaces a part of a file, and commits.
func (c checkout) edit(path, old, with string) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, path))
	require.NoError(c.t, err)
	require.Contains(c.t, string(text), old)
	c.write(path, strings.Replace(string(text), old, with, 1))
	c.commit()
}

// version has all files that name v0.1.0 name another version.
func (c checkout) version(version string) {
	c.t.Helper()
	if version == "v0.1.0" {
		return
	}
	for _, path := range []string{"CHANGELOG.md", "otel/go.mod", "codec/protobuf/go.mod", "durable/cron/go.mod",
		"lease/etcd/go.mod", "lease/postgres/go.mod", "quorum/pebble/go.mod", "store/etcd/go.mod", "store/postgres/go.mod",
		"store/sqlite/go.mod"} {
		c.edit(path, "v0.1.0", version)
	}
}

// newCheckout makes the repository, from which v0.1.0 can be released.
func newCheckout(t *testing.T) checkout {
	t.Helper()
	for _, tool := range []string{"bash", "git", "awk"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
	c := checkout{t: t, dir: t.TempDir()}
	script, err := os.ReadFile(releaseScript)
	require.NoError(t, err)
	c.write(".ci/release", string(script))
	for path, text := range small {
		c.write(path, text)
	}
	c.git("init", "-q", "-b", "main")
	c.commit()
	return c
}

// A release that something stands in the way of is refused, and what to do is said; without it, it is not.
func TestReleaseRefuses(t *testing.T) {
	for name, fault := range map[string]struct {
		make func(c checkout)
		args string // v0.1.0 if empty
		says string
	}{
		"changes":    {func(c checkout) { c.write("new", "") }, "", "commit or remove"},
		"branch":     {func(c checkout) { c.git("switch", "-qc", "b") }, "", "git switch main, or --branch=b"},
		"not main":   {func(checkout) {}, "--branch=b v0.1.0", "made from b, and this is main"},
		"no branch":  {func(c checkout) { c.git("switch", "-q", "--detach") }, "", "this is no branch"},
		"tag":        {func(c checkout) { c.git("tag", "v0.1.0") }, "", "the tag v0.1.0 exists"},
		"nested tag": {func(c checkout) { c.git("tag", "otel/v0.1.0") }, "", "the tag otel/v0.1.0 exists"},
		"below":      {func(c checkout) { c.git("tag", "v0.2.0-rc.1") }, "", "not above v0.2.0-rc.1"},
		"module": {func(c checkout) { c.write("x/go.mod", "module x\n"); c.commit() }, "",
			"x/go.mod is a module of which"},
		"replaced": {func(c checkout) { c.edit("otel/go.mod", "=> ..", "=> ../fork") }, "",
			"otel/go.mod replaces a module"},
		"root replaced": {func(c checkout) { c.edit("go.mod", "\n\n", "\n\nreplace a.b/c => ./c\n") }, "",
			"go.mod replaces a module"},
		"requires another": {func(c checkout) { c.edit("otel/go.mod", "v0.1.0", "v0.0.0") }, "",
			"(cd otel && go mod edit -require=github.com/kith-io/kith@v0.1.0)"},
		"requires none": {func(c checkout) { c.edit("otel/go.mod", "kith v0.1.0", "other v0.1.0") }, "",
			"requires github.com/kith-io/kith of no version"},
		"no section": {func(c checkout) { c.edit("CHANGELOG.md", "v0.1.0", "v0.1.1") }, "",
			"into\nrelease:     ## v0.1.0 - 2"},
		"no date": {func(c checkout) { c.edit("CHANGELOG.md", "2026-01-02", "soon") }, "", "\"## v0.1.0 - DATE\""},
		"empty":   {func(c checkout) { c.edit("CHANGELOG.md", "- The first `entry`.\n", "") }, "", "is empty"},
		"unreleased": {func(c checkout) { c.edit("CHANGELOG.md", "released\n", "released\n- More.\n") }, "",
			"entries under \"## Unreleased\""},
		"no release yet": {func(c checkout) {
			c.edit("docs/compatibility.md", "tagged.", "tagged. There is no release yet.")
		}, "", "docs/compatibility.md says"},
		"v2": {func(c checkout) { c.version("v2.0.0") }, "v2.0.0", "have to end in /v2 first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t)
			require.Contains(t, c.release(0, "--check", "v0.1.0"), "nothing stands in the way of v0.1.0")
			fault.make(c)
			args := strings.Fields(fault.args)
			if len(args) == 0 {
				args = []string{"v0.1.0"}
			}
			out := c.release(1, args...)
			require.Contains(t, out, fault.says)
			require.NoDirExists(t, filepath.Join(c.dir, "dist"))
			require.NotContains(t, out, "line ", "bash stumbled")
		})
	}
}

// What is no semantic version, and what is no command line, is wrong usage.
func TestReleaseUsage(t *testing.T) {
	c := newCheckout(t)
	for _, version := range strings.Fields(`0.1.0 v1 v1.2 v1.2.3.4 v01.2.3 v1.2.3- v1.2.3-a..b v1.2.3-01 v1.2.3+b
		latest`) {
		require.Contains(t, c.release(2, version), "has to be a semantic version", version)
	}
	require.Contains(t, c.release(2), "has to be a semantic version")
	require.Contains(t, c.release(2, "v0.1.0", "v0.2.0"), "one VERSION")
	require.Contains(t, c.release(2, "--push", "v0.1.0"), "there is no flag --push")
	require.Contains(t, c.release(2, "--branch"), "wants the name of a branch")
	require.Contains(t, c.release(0, "--help"), "exit code: 0 done")
}

// The order is that of semantic versioning: a candidate comes before its release, numbers count as numbers.
func TestReleaseOrder(t *testing.T) {
	c := newCheckout(t)
	refuses := func(tag, version string) bool {
		c.git("tag", tag)
		out := c.release(anyCode, "--check", version)
		c.git("tag", "-d", tag)
		return strings.Contains(out, version+" is not above "+tag+",")
	}
	order := strings.Fields(`v0.1.0-alpha v0.1.0-alpha.1 v0.1.0-alpha.beta v0.1.0-beta v0.1.0-beta.2 v0.1.0-beta.11
		v0.1.0-rc.1 v0.1.0 v0.1.1-0 v0.1.1 v0.1.9 v0.1.10 v0.2.0 v1.0.0`)
	for i := range order[1:] {
		require.False(t, refuses(order[i], order[i+1]), "%s after %s", order[i+1], order[i])
		require.True(t, refuses(order[i+1], order[i]), "%s after %s", order[i], order[i+1])
	}
	c.git("tag", "v0.1.9")
	require.True(t, refuses("v0.1.10", "v0.1.2"), "the last of several")
}

// An older line is released from its own branch, below what other branches have released.
func TestReleaseOfAnOlderLine(t *testing.T) {
	c := newCheckout(t)
	c.git("switch", "-qc", "old")
	c.git("switch", "-q", "main")
	c.write("more", "")
	c.commit()
	c.git("tag", "v0.2.0")
	require.Contains(t, c.release(1, "--check", "v0.1.0"), "v0.1.0 is not above v0.2.0")
	c.git("switch", "-q", "old")
	c.release(0, "--check", "--branch=old", "v0.1.0")
}

// Exported names go in a major version, and before v1 in a minor one; what only a candidate had may go at any time.
func TestReleaseBreaks(t *testing.T) {
	for _, k := range []struct {
		last, next string
		code       int
	}{
		{"v0.0.9", "v0.1.0", 0}, {"v0.1.0", "v0.1.1", 1}, {"v0.9.0", "v1.0.0", 0}, {"v1.0.0", "v1.0.1", 1},
		{"v1.0.0", "v1.1.0", 1}, {"v1.0.0", "v1.1.0-rc.1", 1}, {"v1.1.0-rc.1", "v1.1.0", 0},
	} {
		t.Run(k.last+" "+k.next, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t)
			c.version(k.next)
			c.git("tag", k.last)
			c.edit("api.txt", "B()\n", "B()\nkith: func C()\n")
			c.release(0, "--check", k.next)
			c.edit("api.txt", "kith: func A()\n", "")
			out := c.release(k.code, "--check", k.next)
			require.Equal(t, k.code == 1, strings.Contains(out, "    gone: kith: func A()\n"), out)
			require.NotContains(t, out, "func B")
		})
	}
}

// A whole release: its files, the same bytes for somebody else in another folder, the notes, the stamps, the tags.
func TestLongReleaseIsMade(t *testing.T) {
	long.Test(t)
	if out, err := exec.Command("tar", "--version").Output(); err != nil || !strings.Contains(string(out), "GNU tar") {
		t.Skip("needs GNU tar")
	}
	c := newCheckout(t)
	c.write("cmd/kith/stray.go", "package stray\n") // ignored by git, so no part of the commit
	c.write(".git/info/exclude", "stray.go\n")
	commit := strings.TrimSpace(c.git("rev-parse", "HEAD"))
	out := c.release(0, "v0.1.0")
	require.Contains(t, out, "would tag "+commit+" as v0.1.0 codec/protobuf/v0.1.0 durable/cron/v0.1.0 lease/etcd/v0.1.0 "+
		"lease/postgres/v0.1.0 otel/v0.1.0 quorum/pebble/v0.1.0 store/etcd/v0.1.0 store/postgres/v0.1.0 store/sqlite/v0.1.0")
	if runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") {
		require.Contains(t, out, "kith version names v0.1.0 and "+commit)
	}
	require.Empty(t, c.git("tag"))
	require.Empty(t, c.git("status", "--porcelain"))
	files := c.files("dist/v0.1.0")
	require.Len(t, files, 4)
	require.Equal(t, "### Added\n- The first `entry`.\n", files["NOTES.md"])
	var sums string
	for _, arch := range []string{"amd64", "arm64"} {
		name := "kith-v0.1.0-linux-" + arch
		sum := sha256.Sum256([]byte(files[name+".tar.gz"]))
		sums += hex.EncodeToString(sum[:]) + "  " + name + ".tar.gz\n"
		require.Equal(t, strings.ReplaceAll("@/\n@/LICENSE\n@/NOTICE\n@/kith\n@/loadgen\n", "@", name),
			c.run(0, "tar", "-tzf", "dist/v0.1.0/"+name+".tar.gz"))
	}
	require.Equal(t, sums, files["SHA256SUMS"])

	again := checkout{t: t, dir: filepath.Join(t.TempDir(), "elsewhere")}
	c.git("clone", "-q", c.dir, again.dir)
	out = again.run(0, "bash", "-c", "umask 077 && bash .ci/release --tag v0.1.0")
	require.Contains(t, out, "git push --atomic origin main v0.1.0 codec/protobuf/v0.1.0 durable/cron/v0.1.0 "+
		"lease/etcd/v0.1.0 lease/postgres/v0.1.0 otel/v0.1.0 quorum/pebble/v0.1.0 store/etcd/v0.1.0 "+
		"store/postgres/v0.1.0 store/sqlite/v0.1.0")
	require.Equal(t, files, again.files("dist/v0.1.0"), "the same commit gives the same bytes")
	require.Equal(t, "codec/protobuf/v0.1.0\ndurable/cron/v0.1.0\nlease/etcd/v0.1.0\nlease/postgres/v0.1.0\n"+
		"otel/v0.1.0\nquorum/pebble/v0.1.0\nstore/etcd/v0.1.0\nstore/postgres/v0.1.0\nstore/sqlite/v0.1.0\nv0.1.0\n",
		again.git("tag", "--points-at", commit))
	require.Equal(t, "tag\n", again.git("cat-file", "-t", "otel/v0.1.0"), "annotated")
	require.Contains(t, again.release(1, "v0.1.0"), "the tag v0.1.0 exists")

	c.git("tag", "otel/v0.1.0/in-the-way") // of this name there can be no other
	require.Contains(t, c.release(1, "--tag", "v0.1.0"), "could not make the tag otel/v0.1.0, so there is none")
	require.Equal(t, "otel/v0.1.0/in-the-way\n", c.git("tag"), "all tags or none")
}

// files returns what the files of a folder hold.
func (c checkout) files(dir string) map[string]string {
	c.t.Helper()
	all := map[string]string{}
	sub := os.DirFS(filepath.Join(c.dir, dir))
	require.NoError(c.t, fs.WalkDir(sub, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(sub, path)
		all[path] = string(text)
		return err
	}))
	return all
}
