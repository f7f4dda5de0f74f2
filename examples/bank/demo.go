// The demo: three processes, money that moves between accounts, a process that is killed, and the sum.

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/kith-io/kith/gateway"
)

// process is a process of the service that the demo has started, and where others and clients reach it.
type process struct {
	cmd        *exec.Cmd
	stdin      io.Closer
	node, door string
}

// start starts one. What it is asked waits until it is ready. It leaves when the demo ends, however that ends.
func start(keep string, args ...string) (p process, err error) {
	p.cmd = exec.Command(os.Args[0], append([]string{"node", "--tied", keep}, args...)...)
	p.stdin, err = p.cmd.StdinPipe()
	out, failed := p.cmd.StdoutPipe()
	if err := errors.Join(err, failed, p.cmd.Start()); err != nil {
		return p, err
	}
	_, err = fmt.Fscan(out, &p.node, &p.door)
	return p, err
}

// leave has it leave.
func (p process) leave() { _, _ = p.stdin.Close(), p.cmd.Wait() }

// ask asks an account by whichever process, until there is an answer. The key stays the same, so that the order has its
// effect once, however often it is repeated.
func ask(ctx context.Context, doors []string, key, id string, o order) (account, error) {
	body, _ := json.Marshal(o) // of numbers and a text: it cannot fail
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		url := "http://" + doors[rand.IntN(len(doors))] + "/v1/ask/account/" + id
		q, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		q.Header.Set(gateway.KeyHeader, key)
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			continue // that process is dead
		}
		var a struct {
			account
			gateway.Failure
		}
		err = json.NewDecoder(answer.Body).Decode(&a)
		_ = answer.Body.Close()
		if err == nil && a.Code != "" && answer.StatusCode < 500 {
			return account{}, errors.New(a.Text)
		} else if err == nil && a.Code == "" {
			return a.account, nil
		}
	}
	return account{}, ctx.Err()
}

// demo shows the service. Its error says so when money is missing, or there is too much.
func demo(ctx context.Context, out io.Writer, d time.Duration, kind string) error {
	dir, err := os.MkdirTemp("", "bank-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var seeds, doors []string
	var p process
	for i := range 3 {
		keep := "--db=" + filepath.Join(dir, "db")
		if kind == "quorum" {
			keep = "--disk=" + filepath.Join(dir, fmt.Sprint("disk", i))
		}
		if p, err = start(keep, seeds...); err != nil {
			return fmt.Errorf("process %d: %w", i+1, err)
		}
		defer p.leave()
		seeds, doors = append(seeds, p.node), append(doors, p.door)
		fmt.Fprintf(out, "process %d, pid %d, serves http://%s\n", i+1, p.cmd.Process.Pid, p.door)
	}
	fmt.Fprintf(out, `try: curl -d '{"deposit":100}' -H 'Idempotency-Key: 1' http://%[1]s/v1/ask/account/anna
     curl -d '{"transfer":30,"to":"ben"}' -H 'Idempotency-Key: 2' http://%[1]s/v1/ask/account/anna
     curl -d '{}' http://%[1]s/v1/ask/account/ben
`, doors[0])
	if err = move(ctx, out, doors, cmp.Or(d, 10*time.Second), p.cmd.Process); err == nil && d == 0 {
		fmt.Fprintln(out, "serving until Ctrl-C")
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return nil // asked to end, which is no failure
	}
	return err
}

// move moves money for a time, kills a process meanwhile, and compares each account with what it should have.
func move(ctx context.Context, out io.Writer, doors []string, d time.Duration, victim *os.Process) (err error) {
	ctx, cancel := context.WithTimeout(ctx, d+2*time.Minute)
	defer cancel()
	n, want, sum, longest := 0, [10]int64{}, int64(0), time.Duration(0)
	do := func(i int, o order) (a account) { // each under a key of its own
		n++
		begun := time.Now()
		if err == nil {
			a, err = ask(ctx, doors, fmt.Sprint("order ", n), fmt.Sprint("demo-", i), o)
		}
		longest = max(longest, time.Since(begun))
		return a
	}
	for i := range want {
		want[i] = 10_000
		do(i, order{Deposit: want[i]})
	}
	killed := make(chan error)
	time.AfterFunc(d/2, func() { killed <- victim.Kill() }) // in the midst of a transfer
	for begun := time.Now(); time.Since(begun) < d && err == nil; {
		from, amount := rand.IntN(len(want)), 1+rand.Int64N(20)
		to := (from + 1 + rand.IntN(len(want)-1)) % len(want)
		do(from, order{Transfer: amount, To: fmt.Sprint("demo-", to)})
		want[from], want[to] = want[from]-amount, want[to]+amount
	}
	err = errors.Join(err, <-killed)
	fmt.Fprintf(out, "%d orders, and kill -9 %d in the midst of them; the longest took %v\n", n, victim.Pid,
		longest.Round(time.Millisecond))
	for i, w := range want {
		has := do(i, order{}).Balance
		for ; has < w && err == nil; has = do(i, order{}).Balance { // some may be on its way
		}
		if has != w || err != nil {
			return errors.Join(err, fmt.Errorf("demo-%d has %d and should have %d", i, has, w))
		}
		sum += has
	}
	fmt.Fprintf(out, "each account has what it should have; the sum is %d\n", sum)
	return nil
}
