// NATS: three servers with JetStream, and a bucket of keys and values with three replicas in files.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/kith-io/kith/internal/cli"
)

// natses is three servers, and a client.
type natses struct {
	commands []*exec.Cmd
	client   *nats.Conn
	bucket   nats.KeyValue
}

// startNats starts them. sync is how often a server syncs what it has written: always before each answer.
func startNats(ctx context.Context, program, dir, sync string) (*natses, error) {
	x := &natses{}
	var clients, routes []string
	for range 3 {
		for _, list := range []*[]string{&clients, &routes} {
			addr, err := freeAddr()
			if err != nil {
				return x, err
			}
			*list = append(*list, addr)
		}
	}
	for i := range 3 {
		file := filepath.Join(dir, fmt.Sprint("n", i, ".conf"))
		text := fmt.Sprintf("server_name: n%d\nlisten: %q\njetstream { store_dir: %q, sync_interval: %s }\n"+
			"cluster { name: c, listen: %q, routes: [%s] }\n", i, clients[i], filepath.Join(dir, fmt.Sprint("n", i)), sync,
			routes[i], "nats://"+strings.Join(routes, ", nats://"))
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			return x, err
		}
		cmd := exec.Command(program, "-c", file)
		if err := cmd.Start(); err != nil {
			return x, fmt.Errorf("--nats: %w", err)
		}
		x.commands = append(x.commands, cmd)
	}
	return x, x.open(ctx, clients)
}

// open makes the bucket once the servers have met. Reads go to its leader, not to any replica.
func (x *natses) open(ctx context.Context, clients []string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if err = x.opens(clients); err == nil {
			return nil
		}
		if !cli.Pause(ctx, 200*time.Millisecond) {
			return fmt.Errorf("NATS with JetStream: %w", err)
		}
	}
}

func (x *natses) opens(clients []string) (err error) {
	if x.client == nil {
		if x.client, err = nats.Connect("nats://" + strings.Join(clients, ",nats://")); err != nil {
			x.client = nil
			return err
		}
	}
	js, err := x.client.JetStream()
	if err != nil {
		return err
	}
	_, err = js.AddStream(&nats.StreamConfig{Name: "KV_bucket", Subjects: []string{"$KV.bucket.>"}, Replicas: 3,
		Storage: nats.FileStorage, MaxMsgsPerSubject: 1, Discard: nats.DiscardNew, AllowRollup: true, DenyDelete: true,
		MaxMsgs: -1, MaxBytes: -1})
	if err != nil {
		return err
	}
	x.bucket, err = js.KeyValue("bucket")
	return err
}

func (x *natses) end() {
	if x == nil {
		return
	}
	if x.client != nil {
		x.client.Close()
	}
	for _, c := range x.commands {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// measure measures the bucket, by a client of this process.
func (x *natses) measure(ctx context.Context, c *compareCmd) (figures, error) {
	data := make([]byte, c.Size)
	return measured(ctx, c.Callers, c.For, func(_ context.Context, i int) error {
		_, err := x.bucket.Put(fmt.Sprint("key", i), data)
		return err
	}, func(_ context.Context, i int) error {
		_, err := x.bucket.Get(fmt.Sprint("key", i))
		return err
	})
}
