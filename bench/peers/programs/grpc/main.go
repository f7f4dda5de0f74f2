// Command grpc is a pair of gRPC: client streams for tells, unary calls or bidirectional streams for asks. It has no
// entities: the id travels in the message.
package main

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/bench/peers/pb"
	"github.com/kith-io/kith/bench/peers/rig"
)

// workers serve streams instead of a goroutine made for each. Windows and buffers stay at gRPC's defaults, which size
// windows to what the connection carries: fixed ones of 64 KiB to 4 MiB and larger buffers were no faster here.
const workers = 2

func main() {
	encoding.RegisterCodecV2(codec{})
	rig.Main(&rig.Program{Module: "google.golang.org/grpc", Serve: serve, Dial: dial})
}

// codec is vtprotobuf's fast path for our messages, into pooled buffers.
type codec struct{}

// Name is the default codec's, so that this one takes its place.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m := v.(*pb.Work)
	buf := mem.DefaultBufferPool().Get(m.SizeVT())
	if _, err := m.MarshalToSizedBufferVT(*buf); err != nil {
		mem.DefaultBufferPool().Put(buf)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(buf, mem.DefaultBufferPool())}, nil
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	m := v.(*pb.Work)
	*m = pb.Work{Payload: m.Payload[:0]}
	return m.UnmarshalVT(b.ReadOnlyData())
}

// receiver is the service.
type receiver struct{ in *rig.Inbound }

var description = grpc.ServiceDesc{
	ServiceName: "kith.peers.Work",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Ask", Handler: func(srv any, _ context.Context, decode func(any) error,
		_ grpc.UnaryServerInterceptor) (any, error) {
		m := new(pb.Work)
		if err := decode(m); err != nil {
			return nil, err
		}
		srv.(*receiver).in.Count(int(m.Slot))
		return m, nil
	}}},
	Streams: []grpc.StreamDesc{
		{StreamName: "Tell", ClientStreams: true, Handler: func(srv any, s grpc.ServerStream) error {
			m := new(pb.Work)
			for {
				if err := s.RecvMsg(m); err != nil {
					return nil // the sender has closed it
				}
				srv.(*receiver).in.Count(int(m.Slot))
			}
		}},
		{StreamName: "Asks", ClientStreams: true, ServerStreams: true, Handler: func(srv any, s grpc.ServerStream) error {
			m := new(pb.Work)
			for {
				if err := s.RecvMsg(m); err != nil {
					return nil
				}
				srv.(*receiver).in.Count(int(m.Slot))
				if err := s.SendMsg(m); err != nil {
					return err
				}
			}
		}},
	},
}

func serve(_ context.Context, in *rig.Inbound) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := grpc.NewServer(grpc.NumStreamWorkers(workers))
	s.RegisterService(&description, &receiver{in})
	go func() { _ = s.Serve(l) }()
	return l.Addr().String(), nil
}

func dial(_ context.Context, addr string) (rig.Sender, error) {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &sender{conn: conn, ids: bench.IDs(rig.Entities)}, nil
}

type sender struct {
	conn *grpc.ClientConn
	ids  []string
}

// Load implements rig.Sender. Streams live as long as the load.
func (s *sender) Load(ctx context.Context, l rig.Load) (rig.Result, error) {
	streams, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	v := rig.Variants{"unary": {Ask: s.unary}}
	if l.Variant == "stream" {
		var err error
		if v["stream"], err = s.streams(streams, l); err != nil {
			return rig.Result{}, err
		}
	}
	return v.Load(ctx, l)
}

func (s *sender) unary(_, i int, payload []byte) error {
	return s.conn.Invoke(context.Background(), "/kith.peers.Work/Ask",
		&pb.Work{Slot: uint64(i), Id: s.ids[i], Payload: payload}, new(pb.Work))
}

// streams opens a stream for each sending goroutine of tells, and one for up to sixteen callers of asks.
func (s *sender) streams(ctx context.Context, l rig.Load) (rig.Client, error) {
	if l.Work == rig.Tell {
		return s.tells(ctx)
	}
	asks := make([]*asks, (l.Inflight+callersPerStream-1)/callersPerStream)
	for k := range asks {
		stream, err := s.conn.NewStream(ctx, &description.Streams[1], "/kith.peers.Work/Asks")
		if err != nil {
			return rig.Client{}, err
		}
		asks[k] = newAsks(stream)
	}
	return rig.Client{Ask: func(caller, i int, payload []byte) error {
		return asks[caller/callersPerStream].ask(caller%callersPerStream, s.ids[i], payload)
	}}, nil
}

func (s *sender) tells(ctx context.Context) (rig.Client, error) {
	var streams [rig.Senders]grpc.ClientStream
	for k := range streams {
		var err error
		if streams[k], err = s.conn.NewStream(ctx, &description.Streams[0], "/kith.peers.Work/Tell"); err != nil {
			return rig.Client{}, err
		}
	}
	var work [rig.Senders]pb.Work // a sent message may be used again: it has been encoded
	return rig.Client{
		Tell: func(lane, i int, payload []byte) error {
			m := &work[lane]
			m.Slot, m.Id, m.Payload = uint64(i), s.ids[i], payload
			return streams[lane].SendMsg(m)
		},
		Flush: func(lane int) error {
			if err := streams[lane].CloseSend(); err != nil {
				return err
			}
			_ = streams[lane].RecvMsg(new(pb.Work)) // the end, when all has been received
			return nil
		},
	}, nil
}

// callersPerStream is how many callers share a bidirectional stream.
const callersPerStream = 16

// asks is a bidirectional stream and the callers that wait at it.
type asks struct {
	mu      sync.Mutex // of sending
	stream  grpc.ClientStream
	work    pb.Work
	waiting [callersPerStream]chan error
}

func newAsks(stream grpc.ClientStream) *asks {
	a := &asks{stream: stream}
	for k := range a.waiting {
		a.waiting[k] = make(chan error, 1)
	}
	go a.receive()
	return a
}

func (a *asks) ask(slot int, id string, payload []byte) error {
	a.mu.Lock()
	a.work.Slot, a.work.Id, a.work.Payload = uint64(slot), id, payload
	err := a.stream.SendMsg(&a.work)
	a.mu.Unlock()
	if err != nil {
		return err
	}
	return <-a.waiting[slot]
}

func (a *asks) receive() {
	m := new(pb.Work)
	for {
		err := a.stream.RecvMsg(m)
		if err == nil {
			a.waiting[m.Slot] <- nil
			continue
		}
		for _, ch := range a.waiting {
			select {
			case ch <- err:
			default: // nobody waits there
			}
		}
		return
	}
}
