package sandbox_test

import (
	"errors"
	"os"
	"testing"

	"codespace/sandbox"
	"codespace/sandbox/message"
)

// FuzzRequest sends one datagram to the service. It answers or ends; it does not
// panic, and no plan that is open reaches the builder.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"version":3,"id":1,"verb":"release","sandbox":"a"}`))
	f.Add([]byte(`{"version":3,"id":2,"verb":"cell","sandbox":"a","writable":true}`))
	f.Add([]byte(`{"version":3,"id":3,"verb":"prepare","plan":{"id":"a","root":{"path":"/srv","device":1,"inode":2},` +
		`"identity":{"host_uid":7,"host_gid":7},"limits":{"memory":1,"pids":1,"open_files":1},"tmp_bytes":1,"shm_bytes":1}}`))
	f.Add([]byte(`{"version":9}`))
	f.Fuzz(func(t *testing.T, request []byte) {
		if len(request) == 0 || len(request) > message.MaxBytes {
			return // TestServiceEndsAtBreach
		}
		no := errors.New("no")
		ours, _ := serve(t, sandbox.Builder{
			Prepare: func(p sandbox.Plan) (sandbox.Receipt, *os.File, error) {
				if err := p.Check(); err != nil {
					t.Error(err)
				}
				return sandbox.Receipt{}, nil, no
			},
			Cell:    func(string, sandbox.Wish) (sandbox.Made, error) { return sandbox.Made{}, no },
			Release: func(string) error { return no },
		})
		ch, err := message.New(ours)
		if err != nil {
			t.Fatal(err)
		}
		defer ch.Close()
		if err := ch.Send(request); err != nil {
			t.Fatal(err)
		}
		ch.Receive(make([]byte, message.MaxBytes)) // an answer, or the end
	})
}

// FuzzAnswer sends one datagram to a client that waits: it is given an answer or
// finds its helper lost.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"id":1,"receipt":{"digest":"sha256:00","layers":["a"]},"leaf":{"memory":"/m"},"pid":7}`))
	f.Add([]byte(`{"id":1,"failed":{"step":"proc","index":3,"errno":1}}`))
	f.Add([]byte(`{"id":2}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if len(answer) == 0 || len(answer) > message.MaxBytes {
			return // TestClientEndsAtBreach
		}
		h, p := pretend(t)
		done := make(chan struct{})
		go func() { h.Release(t.Context(), "a"); close(done) }()
		p.request()
		if err := p.Send(answer); err != nil {
			t.Fatal(err)
		}
		p.Close()
		<-done
		<-h.Done()
	})
}
