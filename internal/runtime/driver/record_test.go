// Tests of the file that remembers the cluster: whole or not at all, of this cluster, of one process at a time.

package driver

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shutdown"
)

func recordConfig(dir string) Config {
	return Config{Directory: dir, Name: "market", Logger: slog.New(slog.DiscardHandler)}.WithDefaults()
}

// seen is a view of three Up members, or of fewer.
func seen(up int) *membership.View {
	v := &membership.View{ClusterID: 0xabc, Birth: 1 << 60}
	for i := range up {
		id := peer.ID{Addr: peer.MustAddr([]string{"10.0.0.1:7355", "10.0.0.2:7355", "db.local:1"}[i]), Inc: 1}
		v.Members = append(v.Members, membership.Member{ID: id, Status: membership.Up})
	}
	v.Self = v.Members[0].ID
	return v
}

// keepAll writes what a node in dir remembers that saw v and then ended.
func keepAll(t *testing.T, dir string, v *membership.View, why *shutdown.EndedError, last *membership.View,
	yielded ...*membership.Record) {
	t.Helper()
	yielded = append(yielded, nil)
	r, err := openRecord(recordConfig(dir), legacy{})
	require.NoError(t, err)
	r.start("10.0.0.1:7355", func(membership.Record) {})
	r.note(v)
	r.finish(recordAfter(why, yielded[0], last, ""))
}

func TestRecordOutlivesTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "one")
	crash := &shutdown.EndedError{Kind: shutdown.EndClosed}
	keepAll(t, dir, seen(3), crash, nil)
	want := membership.Record{}.Next(seen(3), "")
	require.Len(t, want.Others, 2)
	read := func() membership.Record {
		rec, _, err := readRecord(filepath.Join(dir, recordName), "market")
		require.NoError(t, err)
		return rec
	}
	require.True(t, want.Equal(read()))

	// Newcomers stand in the file as well.
	coming := seen(3)
	coming.Members[2].Status = membership.Joining
	keepAll(t, dir, coming, crash, nil)
	require.Equal(t, 1, read().Newcomers)
	require.True(t, membership.Record{}.Next(coming, "").Equal(read()))
	keepAll(t, dir, seen(3), crash, nil)

	// So do members without the role, which could not carry the cluster on.
	by := membership.Record{}.Next(seen(3), "store")
	require.Len(t, by.Bystanders, 2)
	keepAll(t, dir, seen(3), crash, nil, &by)
	require.True(t, by.Equal(read()))
	keepAll(t, dir, seen(3), crash, nil)

	// A node that left remembers those that stay; the last one what the birth of its next cluster must exceed.
	floor := membership.Record{ClusterID: 0xabc, Birth: 1 << 60, Highest: 1 << 60}
	left := &shutdown.EndedError{Kind: membership.EndLeft}
	keepAll(t, dir, seen(3), left, seen(3))
	require.Equal(t, want.Others, read().Others)
	require.False(t, read().Counts)
	keepAll(t, dir, seen(3), left, seen(1))
	require.Equal(t, floor, read())

	// A downed node remembers those that live on by its last view, and waits for those that went with it.
	keepAll(t, dir, seen(3), crash, nil)
	went := seen(3)
	went.Members[0].Status, went.Members[1].Status = membership.Down, membership.Down
	keepAll(t, dir, seen(3), &shutdown.EndedError{Kind: membership.EndDowned}, went)
	require.Equal(t, want.Others[1:], read().Others)
	require.Equal(t, want.Others[:1], read().Bystanders)
	require.False(t, read().Counts)

	// A twin that yields remembers the older cluster; one that goes over to another cluster that birth.
	older := membership.Record{ClusterID: 5, Birth: 6, Highest: 1 << 60, Others: want.Others[:1]}
	keepAll(t, dir, seen(1), &shutdown.EndedError{Kind: membership.EndDuplicate}, seen(1), &older)
	require.True(t, older.Equal(read()))
	keepAll(t, dir, seen(1), &shutdown.EndedError{Kind: membership.EndRejoin}, seen(1))
	require.Equal(t, floor, read())

	// A node that was never admitted keeps what was there.
	keepAll(t, dir, seen(3), crash, nil)
	r, err := openRecord(recordConfig(dir), legacy{})
	require.NoError(t, err)
	require.True(t, want.Equal(r.memory.Kept()))
	r.start("10.0.0.1:7355", func(membership.Record) {})
	r.finish(recordAfter(left, nil, &membership.View{}, ""))
	require.True(t, want.Equal(read()))
	_, err = os.Stat(filepath.Join(dir, recordName+".new"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// JOIN-1: files that builds before this one wrote are read, and what is written is the same to the byte, so that they
// read it too: of a member that was killed; and of one that left as the last, which they wrote where nobody could carry
// the cluster on.
func TestRecordFilesStayReadable(t *testing.T) {
	crash, left := &shutdown.EndedError{Kind: shutdown.EndClosed}, &shutdown.EndedError{Kind: membership.EndLeft}
	for name, c := range map[string]struct {
		why  *shutdown.EndedError
		last *membership.View
		want membership.Record
	}{
		"member.json": {crash, nil, membership.Record{}.Next(seen(3), "")},
		"left.json":   {left, seen(1), membership.Record{ClusterID: 0xabc, Birth: 1 << 60, Highest: 1 << 60}},
	} {
		file := filepath.Join("testdata", "record", name)
		golden, err := os.ReadFile(file)
		require.NoError(t, err)
		rec, _, err := readRecord(file, "market")
		require.NoError(t, err)
		require.True(t, c.want.Equal(rec), "%s: %+v", name, rec)
		dir := t.TempDir()
		keepAll(t, dir, seen(3), c.why, c.last)
		wrote, err := os.ReadFile(filepath.Join(dir, recordName))
		require.NoError(t, err)
		var f recordFile
		require.NoError(t, json.Unmarshal(wrote, &f))
		f.Node, _, _ = strings.Cut(f.Node, " ") // the name of this directory is none of the file's
		f.Checksum = f.sum()
		wrote, err = json.MarshalIndent(f, "", "  ")
		require.NoError(t, err)
		require.Equal(t, string(golden), string(wrote)+"\n", name)
	}
}

// JOIN-1: a file that is damaged in any byte, cut short, or of another cluster is an error that says what to do.
func TestBadRecords(t *testing.T) {
	dir := t.TempDir()
	keepAll(t, dir, seen(3), &shutdown.EndedError{Kind: shutdown.EndClosed}, nil)
	path := filepath.Join(dir, recordName)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	try := func(b []byte) error {
		require.NoError(t, os.WriteFile(path, b, 0o600))
		_, err := openRecord(recordConfig(dir), legacy{})
		return err
	}
	for n := range len(strings.TrimRight(string(good), "\n")) {
		err := try(good[:n])
		require.ErrorIs(t, err, ErrRecord, "cut at %d", n)
		require.ErrorContains(t, err, "--never-form")
	}
	for n := range good {
		bad := append([]byte{}, good...)
		if bad[n] < '0' || bad[n] > '9' {
			continue // blanks may change; every value holds digits
		}
		bad[n] = '0' + (bad[n]-'0'+1)%10
		require.ErrorIs(t, try(bad), ErrRecord, "byte %d of %s", n, bad)
	}
	require.ErrorIs(t, try(make([]byte, recordMost+1)), ErrRecord)
	require.NoError(t, os.WriteFile(path, good, 0o600))
	cfg := recordConfig(dir)
	cfg.Name = "shop"
	_, err = openRecord(cfg, legacy{})
	require.ErrorIs(t, err, ErrRecord)
	require.ErrorContains(t, err, `of the cluster "market", this node's is "shop"`)
	ended, _, err := readRecord(filepath.Join("testdata", "record", "left.json"), "shop")
	require.NoError(t, err, "nobody of the other cluster is left")
	require.EqualValues(t, 1<<60, ended.Highest, "its fences are")
	r, err := openRecord(recordConfig(dir), legacy{})
	require.NoError(t, err, "the directory is free again after a failed start")
	r.release()
}

// A file that cannot be opened may be a good record: the error says why, and not that it should be removed (JOIN-1).
func TestRecordThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	keepAll(t, dir, seen(3), &shutdown.EndedError{Kind: shutdown.EndClosed}, nil)
	path := filepath.Join(dir, recordName)
	for at, why := range map[string]string{filepath.Join(path, recordName): "not a directory", path: "permission denied"} {
		if at == path {
			require.NoError(t, os.Chmod(path, 0))
			if os.Geteuid() == 0 {
				continue // root may read all
			}
		}
		_, _, err := readRecord(at, "market")
		require.ErrorIs(t, err, ErrRecord)
		require.EqualError(t, err, "kith: record of the membership: "+at+" cannot be read: "+why)
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	err := Config{Name: "market", Directory: dir}.CheckFiles()
	require.ErrorIs(t, err, ErrRecord)
	require.ErrorContains(t, err, "cannot be read")
	require.NotContains(t, err.Error(), "remove")
}

func TestDirectoryOfOneNode(t *testing.T) {
	dir := t.TempDir()
	r, err := openRecord(recordConfig(dir), legacy{})
	require.NoError(t, err)
	_, err = openRecord(recordConfig(dir), legacy{})
	require.ErrorIs(t, err, ErrRecord)
	require.ErrorContains(t, err, "another node uses it")
	r.release()
	r, err = openRecord(recordConfig(dir), legacy{})
	require.NoError(t, err)
	r.release()
}

// FuzzRecord: whatever lies in the file, it is read or refused.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"format":1}`))
	f.Add([]byte(`{"format":1,"cluster_name":"market","cluster_id":"abc","others":["a:1"],"checksum":"x"}`))
	path := filepath.Join(f.TempDir(), recordName)
	f.Fuzz(func(t *testing.T, b []byte) {
		require.NoError(t, os.WriteFile(path, b, 0o600))
		rec, _, err := readRecord(path, "market")
		if err != nil {
			require.ErrorIs(t, err, ErrRecord)
			return
		}
		require.LessOrEqual(t, len(rec.Others), membership.MaxRemembered)
	})
}

// A directory is its node's wherever that is; a copy says that the node that kept the record may live (AVL-3).
func TestRecordIsOfItsDirectory(t *testing.T) {
	dir := t.TempDir()
	keepAll(t, dir, seen(3), &shutdown.EndedError{Kind: shutdown.EndClosed}, nil)
	kept, own, elsewhere := membership.Record{}.Next(seen(3), ""), seen(3).Self.Addr, peer.MustAddr("10.0.0.9:7355")
	open := func(dir string, self peer.Addr) (membership.Record, peer.Addr) {
		r, err := openRecord(recordConfig(dir), legacy{})
		require.NoError(t, err)
		defer r.release()
		return r.known(self)
	}
	rec, former := open(dir, own)
	require.True(t, kept.Equal(rec))
	require.True(t, former.IsZero())
	rec, former = open(dir, elsewhere)
	require.True(t, kept.Equal(rec), "it has moved")
	require.Equal(t, own, former)

	b, err := os.ReadFile(filepath.Join(dir, recordName))
	require.NoError(t, err)
	var f recordFile
	require.NoError(t, json.Unmarshal(b, &f))
	if f.Node == own.String() {
		t.Skip("this file system does not say when a file was made")
	}
	copied := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(copied, recordName), b, 0o600))
	rec, former = open(copied, elsewhere)
	require.Equal(t, own, former)
	require.True(t, rec.Names(own))
	require.Len(t, rec.Others, 3)
	require.False(t, rec.Counts, "it is none of those who could carry the cluster on")
	rec, former = open(copied, own)
	require.True(t, kept.Equal(rec), "nobody else is at its address")
	require.True(t, former.IsZero())

	// Builds before this one wrote the address alone.
	f.Node = own.String()
	f.Checksum = f.sum()
	b, err = json.Marshal(f)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(copied, recordName), b, 0o600))
	rec, former = open(copied, elsewhere)
	require.True(t, kept.Equal(rec), "nothing is known: it may have moved")
	require.Equal(t, own, former)
}

// A pipe, a device, a directory or a link in the place of the record or its lock is an error of the start, which does
// not hang; the target of a link is as it was. A directory that others can write to is logged.
func TestRecordInATrap(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target")
	require.NoError(t, os.WriteFile(target, []byte("mine"), 0o600))
	for _, name := range []string{recordName, "lock"} {
		for what, trap := range map[string]func(at string) error{
			"pipe":      func(at string) error { return unix.Mkfifo(at, 0o600) },
			"zero":      func(at string) error { return os.Symlink("/dev/zero", at) },
			"directory": func(at string) error { return os.Mkdir(at, 0o700) },
			"link":      func(at string) error { return os.Symlink(target, at) },
		} {
			dir := t.TempDir()
			require.NoError(t, trap(filepath.Join(dir, name)))
			_, err := openRecord(recordConfig(dir), legacy{})
			require.ErrorIs(t, err, ErrRecord, "%s as %s", what, name)
			require.ErrorContains(t, err, name)
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.Symlink(target, filepath.Join(dir, recordName+".new")))
	require.NoError(t, os.Chmod(dir, 0o777))
	var log bytes.Buffer
	cfg := recordConfig(dir)
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r, err := openRecord(cfg, legacy{})
	require.NoError(t, err)
	require.Contains(t, log.String(), "others can write to the directory")
	r.start("10.0.0.1:7355", func(membership.Record) {})
	r.note(seen(3))
	r.finish(recordAfter(&shutdown.EndedError{Kind: shutdown.EndClosed}, nil, nil, ""))
	text, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
	rec, _, err := readRecord(filepath.Join(dir, recordName), "market")
	require.NoError(t, err)
	require.True(t, rec.Known())
}

// TestRecordThatCannotBeWritten: the log has that once, however often it is tried, and that it works again (OPS-2).
func TestRecordThatCannotBeWritten(t *testing.T) {
	var said bytes.Buffer
	r := &recordKeeper{dir: filepath.Join(t.TempDir(), "gone"), name: "x", log: slog.New(slog.NewTextHandler(&said, nil))}
	rec := membership.Record{ClusterID: 1, Birth: 2}
	require.True(t, rec.Known())
	for range 3 {
		require.False(t, r.write(rec))
	}
	require.Equal(t, 1, strings.Count(said.String(), "is not written"), said.String())
	require.NoError(t, os.Mkdir(r.dir, 0o700))
	require.True(t, r.write(rec))
	require.True(t, r.write(rec))
	require.Equal(t, 1, strings.Count(said.String(), "is written again"))
	require.Contains(t, said.String(), "failed=3")
}
