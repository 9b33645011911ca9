package main

import (
	"context"
	"errors"
	"fmt"
)

// answer answers a program that asks, and resizes its terminal before it does.
func (d *demo) answer(ctx context.Context, s *session) (status, error) {
	argv := []string{"python3", "ask.py"}
	d.note(fmt.Sprintf("exec_command %q, tty", argv))
	id, err := s.start(ctx, argv, map[string]any{"tty": true})
	if err != nil {
		return status{}, err
	}
	defer s.terminate(ctx, id)
	if said, err := s.until(ctx, id, "? "); err != nil {
		return status{output: said}, err
	}
	d.note("process_resize to 40 rows and 120 columns")
	if _, err := call[struct{}](ctx, s, "process_resize", map[string]any{"process_id": id, "rows": 40, "cols": 120}); err != nil {
		return status{}, err
	}
	// Not waited for: the program handles the signal before it greets, at the latest.
	d.note(`write_stdin "Ada\n"`)
	if err := s.write(ctx, id, "Ada\n"); err != nil {
		return status{}, err
	}
	return s.end(ctx, id)
}

// serve has a server run on the port that our gate has on the host: who asks in
// the workspace gets to the workspace's, and nobody to ours. The server only
// reads, so whoever writes is not kept waiting by it.
func (d *demo) serve(ctx context.Context, s *session) (status, error) {
	server := []string{"python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", d.gate.port()}
	d.note(fmt.Sprintf("exec_command %q, access read", server))
	id, err := s.start(ctx, server, map[string]any{"access": "read"})
	if err != nil {
		return status{}, err
	}
	defer s.terminate(ctx, id)
	if said, err := s.until(ctx, id, "Serving HTTP"); err != nil {
		return status{output: said}, err
	}
	page := "http://127.0.0.1:" + d.gate.port() + "/c/leap.c"
	client := []string{"python3", "-c", fmt.Sprintf("from urllib.request import urlopen; print(urlopen(%q).read().decode())", page)}
	d.note(fmt.Sprintf("exec_command %q", client))
	got, err := s.run(ctx, client)
	if err != nil {
		return got, err
	}
	d.note("terminate_process, of the server")
	if err := s.terminate(ctx, id); err != nil {
		return got, err
	}
	served, err := s.end(ctx, id)
	if err == nil && served.Termination != "terminated" {
		err = errors.New("the server: " + served.ending())
	}
	got.output = served.output + got.output
	return got, err
}

// script is for a shell: what it does before it waits for a word of input, and
// what it has said by then.
type script struct{ access, text, says string }

var (
	writer = script{"write", "echo draft >note; echo writing; read word; echo $word >note", "writing"}
	reader = script{"read", "cat note; echo mine >note; read word", "Read-only file system\n"}
)

// share has commands read while one that writes is under way, and the next one
// that would write refused until that has ended.
func (d *demo) share(ctx context.Context, s *session) (status, error) {
	ids, seen, err := d.open(ctx, s, writer, reader, reader, reader)
	defer func() {
		for _, id := range ids {
			s.terminate(ctx, id)
		}
	}()
	if err != nil {
		return status{output: seen}, err
	}
	d.note("process_status, of each")
	n, err := s.running(ctx, ids)
	if err != nil {
		return status{output: seen}, err
	}
	seen += fmt.Sprintf("%d commands are running\n", n)
	next := []string{"sh", "-c", "echo the next reads: $(cat note); echo more >note"}
	d.note(fmt.Sprintf("exec_command %q", next))
	early, err := s.run(ctx, next)
	if err == nil {
		return early, errors.New("a second command was let write")
	}
	seen += err.Error() + "\n"
	d.note(`write_stdin "final\n", to each, and once they have ended the same exec_command again`)
	if err := s.finish(ctx, ids, "final\n"); err != nil {
		return status{output: seen}, err
	}
	got, err := s.run(ctx, next)
	got.output = seen + got.output
	return got, err
}

// open starts scripts, each once the one before waits for its input.
func (d *demo) open(ctx context.Context, s *session, scripts ...script) (ids []string, seen string, _ error) {
	for _, sc := range scripts {
		argv := []string{"sh", "-c", sc.text}
		d.note(fmt.Sprintf("exec_command %q, access %s", argv, sc.access))
		id, err := s.start(ctx, argv, map[string]any{"access": sc.access})
		if err != nil {
			return ids, seen, err
		}
		ids = append(ids, id)
		said, err := s.until(ctx, id, sc.says)
		seen += said
		if err != nil {
			return ids, seen, err
		}
	}
	return ids, seen, nil
}

// running counts those of the commands that run.
func (s *session) running(ctx context.Context, ids []string) (n int, _ error) {
	for _, id := range ids {
		st, err := call[status](ctx, s, "process_status", map[string]any{"process_id": id})
		if err != nil {
			return n, err
		}
		if st.State == "running" {
			n++
		}
	}
	return n, nil
}

// finish gives each command its input and wants it to exit with code 0 then.
func (s *session) finish(ctx context.Context, ids []string, input string) error {
	for _, id := range ids {
		if err := s.write(ctx, id, input); err != nil {
			return err
		}
		st, err := s.end(ctx, id)
		if err != nil {
			return err
		}
		if err := exits(0)(st); err != nil {
			return fmt.Errorf("%s: %w", st.ending(), err)
		}
	}
	return nil
}
