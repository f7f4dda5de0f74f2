// Surveys and the control goroutine, which has nothing to do with them but to say what moves.

package driver

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/survey"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Questions and answers of others take no place in the inbox of the control goroutine, however many there are, and
// readers of a type post it one job for all (OPS-1).
func TestSurveysStayOutOfTheInbox(t *testing.T) {
	d, err := Start(t.Context(), Config{}.WithDefaults())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	require.NoError(t, d.Ready(t.Context()))
	r, err := d.Register(entity.Type{Name: "orders", Shards: 16_384,
		New: func(string, route.Fence) entity.Handler { return nil }})
	require.NoError(t, err)
	holds, stands := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(stands) })
	t.Cleanup(goOn) // before the node is closed, also when a check fails
	d.inbox.post(func() { close(holds); <-stands })
	<-holds
	question := survey.AppendQuestion(nil, survey.Question{Nonce: 1, Type: r.id})
	for range 10_000 {
		d.Control(d.self, wire.KindSurvey, question, 0)
		d.Control(d.self, wire.KindSurveyAnswer, question, 0)
	}
	require.Positive(t, d.inbox.dropped.Load(), "more than may wait is dropped and counted")
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	answers := make(chan survey.Result, 100)
	for range cap(answers) {
		go func() {
			got, _ := Survey(soon, r)
			answers <- got
		}()
	}
	for range cap(answers) {
		require.Empty(t, (<-answers).Answers, "it does not answer while its control goroutine stands")
	}
	d.inbox.mu.Lock()
	frames, jobs := d.inbox.frames, len(d.inbox.jobs)
	d.inbox.mu.Unlock()
	goOn()
	require.Zero(t, frames)
	require.LessOrEqual(t, jobs, 4, "beside those of the node itself")
	got, err := Survey(t.Context(), r)
	require.NoError(t, err)
	require.Empty(t, got.Missing)
	require.True(t, got.Answers[d.self].Known)
}
