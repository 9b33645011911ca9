package runner

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// connect gives the command its streams and returns its ends of them and the
// files that are left:
//
//	            pipes                     terminal
//	attached    the caller's own          joined with the caller's stdin and stdout
//	otherwise   stdin from the queue,     both over the master
//	            both outputs to the ring
func (p *process) connect(files []*os.File) (theirs [3]*os.File, rest []*os.File, err error) {
	switch {
	case p.attached && p.tty:
		p.from, p.to = files[0], files[1]
		files[2].Close()
		return theirs, files[3:], nil
	case p.attached:
		copy(theirs[:], files)
		return theirs, files[3:], nil
	case p.tty:
		p.stdin, p.stdout = newStdin(p.cell.Terminal, true), p.cell.Terminal
		return theirs, files, nil
	}
	theirs, err = p.pipes()
	return theirs, files, err
}

// pipes makes a pipe for stdin and one for stdout and stderr together. The
// command's ends are blocking, ours are not.
func (p *process) pipes() (theirs [3]*os.File, err error) {
	var in, out [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return theirs, os.NewSyscallError("pipe2", err)
	}
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		unix.Close(in[0])
		unix.Close(in[1])
		return theirs, os.NewSyscallError("pipe2", err)
	}
	unix.SetNonblock(out[0], true)
	unix.SetNonblock(in[1], true)
	p.pipe = os.NewFile(uintptr(in[1]), "stdin")
	p.stdin, p.stdout = newStdin(p.pipe, false), os.NewFile(uintptr(out[0]), "stdout")
	stdout := os.NewFile(uintptr(out[1]), "stdout")
	return [3]*os.File{os.NewFile(uintptr(in[0]), "stdin"), stdout, stdout}, nil
}

// pump moves input and output until nobody can write any more. drained is closed
// at the end of the output.
func (p *process) pump() {
	switch {
	case p.attached && p.tty:
		p.join()
	case p.attached:
	default:
		go p.stdin.pump()
		go func() {
			defer close(p.drained)
			p.out.ReadFrom(p.stdout)
		}()
	}
}

// finishOutput marks the end of the output. The tree is gone, so the stream is at
// its end unless a descriptor of it was handed to another command.
func (p *process) finishOutput() {
	if !p.attached {
		p.stdout.SetReadDeadline(time.Now().Add(closeFor))
		<-p.drained
		p.stdin.end()
	}
	p.out.Close()
}

// closeStreams closes our ends. A joined terminal is closed by those who copy.
func (p *process) closeStreams() {
	for _, f := range []*os.File{p.pipe, p.stdout} {
		if f != nil {
			f.Close()
		}
	}
	if p.tty && p.from == nil {
		p.cell.Terminal.Close()
	}
}
