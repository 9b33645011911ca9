package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"codespace/sandbox"
)

// print writes the diagnosis for people: the answer, the layers, what is in the
// way, the proof, the tools.
func (d *diagnosis) print(w io.Writer) error {
	p := &page{w: w}
	p.line("%s", d.headline())
	p.line("codespace %s, Linux %s, uid %d", d.Version, d.Kernel, d.UID)
	p.layers(d)
	p.circumstances(d)
	ofRunning, ofStrength := d.remedies()
	p.remedies("In the way", ofRunning)
	p.remedies("In the way of full strength", ofStrength)
	p.proof(d)
	p.tools(d)
	return p.err
}

// page writes until the first error, which it keeps.
type page struct {
	w   io.Writer
	err error
}

func (p *page) line(format string, values ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", values...)
	}
}

// table aligns rows; the last cell of each may be as long as it is.
func (p *page) table(rows [][]string) {
	if p.err != nil {
		return
	}
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		for i := range r {
			r[i] = printable(r[i])
		}
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	p.err = t.Flush()
}

func (p *page) layers(d *diagnosis) {
	rows := [][]string{{"LAYER", "STATE", "HOW STRONG"}}
	for _, l := range d.Layers {
		rows = append(rows, []string{l.Name, l.State, l.Strength})
	}
	p.line("")
	p.table(rows)
}

func (p *page) circumstances(d *diagnosis) {
	if len(d.Circumstances) == 0 {
		return
	}
	rows := [][]string{{"AROUND THIS PROCESS", "STATE", "SEEN"}}
	for _, c := range d.Circumstances {
		rows = append(rows, []string{c.Name, c.State, c.Strength})
	}
	p.line("")
	p.table(rows)
}

func (p *page) remedies(title string, all []sandbox.Remedy) {
	if len(all) == 0 {
		return
	}
	p.line("\n%s", title)
	for _, r := range all {
		p.line("  %s\n    see it: %s\n    fix:    %s", printable(r.Knob), printable(r.Show), printable(r.Fix))
	}
}

func (p *page) proof(d *diagnosis) {
	if d.Proof.Ran {
		p.line("\nProof: a sandbox was built (%s) and true ran in it. Its receipt, %s:", d.Proof.Enforcement, d.Proof.Digest)
		for _, l := range d.Proof.Receipt {
			p.line("  %s", printable(l))
		}
		return
	}
	e := d.Proof.Error
	p.line("\nProof: no command could be run (%s).\n  %s: %s", d.Proof.Enforcement, e.Code, printable(e.Message))
	if e.Knob == "" && e.Fix != "" {
		p.line("  fix: %s", printable(e.Fix))
	}
}

func (p *page) tools(d *diagnosis) {
	if len(d.Tools) == 0 {
		p.line("\nTools: everything on PATH is in a sandbox's view.")
		return
	}
	rows := [][]string{{"TOOLS OUTSIDE THE VIEW", "COUNT", "SUCH AS", "FLAGS OF run AND mcp"}}
	for _, t := range d.Tools {
		how := flagText(t.Flags)
		if t.Note != "" {
			how = strings.TrimSpace(how + " (" + t.Note + ")")
		}
		rows = append(rows, []string{t.Directory, strconv.Itoa(t.Count), strings.Join(t.Names, " "), how})
	}
	p.line("")
	p.table(rows)
	if len(d.ToolFlags) > 0 {
		p.line("All of them: codespace run %s -- COMMAND", printable(flagText(d.ToolFlags)))
		p.line("What is mounted can be read by every command, whatever lies there; --env PATH passes your PATH on.")
	}
}

// flagText is flags as a shell takes them.
func flagText(flags []string) string {
	var words []string
	for _, f := range flags {
		if strings.ContainsFunc(f, func(c rune) bool {
			return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("-_./=:+@%,", c)
		}) {
			f = "'" + strings.ReplaceAll(f, "'", `'\''`) + "'"
		}
		words = append(words, f)
	}
	return strings.Join(words, " ")
}

// printable shows what is no plain text as an escape: names of files are anybody's.
func printable(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case unicode.IsPrint(c) && c != unicode.ReplacementChar:
			b.WriteRune(c)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		}
	}
	return b.String()
}
