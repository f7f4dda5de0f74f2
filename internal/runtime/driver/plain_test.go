// What tests send without headers.

package driver

import (
	"context"
	"time"
)

func (r *Region) Tell(id string, payload []byte) error { return r.TellWith(nil, id, payload) }

func (r *Region) TellWait(ctx context.Context, id string, payload []byte) error {
	return r.TellWaitWith(ctx, nil, id, payload)
}

func (r *Region) TellBulk(ctx context.Context, id string, payload []byte, progress func(sent, total int)) error {
	return r.TellBulkWith(ctx, nil, id, payload, progress)
}

func (r *Region) Ask(ctx context.Context, id string, payload []byte) ([]byte, error) {
	return r.AskWith(ctx, nil, id, payload)
}

func (r *Region) AskWithin(d time.Duration, id string, payload, into []byte) ([]byte, error) {
	return r.AskWithinWith(d, nil, id, payload, into)
}

func (r *Region) AskFunc(d time.Duration, id string, payload []byte, f func(reply []byte, err error)) error {
	return r.AskFuncWith(d, nil, id, payload, f)
}
