package policy

import "time"

// defaultLimits hold where the operator says nothing.
var defaultLimits = Limits{
	Wall:      10 * time.Minute,
	Grace:     2 * time.Second,
	Memory:    2 << 30,
	PIDs:      512,
	Processes: 8,
	Output:    1 << 20,
	OpenFiles: 1024,
	FileSize:  64 << 20,
}

// limit is one key of a limits table.
type limit struct {
	key  string
	rule rule[any, int64]
	set  func(*Limits, int64)
}

var (
	wallLimit   = limit{"wall", wallTime(), func(l *Limits, n int64) { l.Wall = time.Duration(n) }}
	memoryLimit = limit{"memory", sizes.within(16<<20, 16<<40), func(l *Limits, n int64) { l.Memory = n }}

	limits = []limit{
		wallLimit,
		{"grace", durations.within(0, int64(10*time.Minute)), func(l *Limits, n int64) { l.Grace = time.Duration(n) }},
		memoryLimit,
		{"pids", counts.within(1, 1_000_000), func(l *Limits, n int64) { l.PIDs = n }},
		{"processes", counts.within(1, 1024), func(l *Limits, n int64) { l.Processes = int(n) }},
		{"output", sizes.within(4<<10, 1<<30), func(l *Limits, n int64) { l.Output = n }},
		{"open_files", counts.within(16, 1<<20), func(l *Limits, n int64) { l.OpenFiles = n }},
		{"file_size", sizes.within(4<<10, 1<<40), func(l *Limits, n int64) { l.FileSize = n }},
	}
)

// wallTime is a bounded duration, or zero for no time limit. A bound below the
// millisecond would only be a zero mistyped.
func wallTime() rule[any, int64] {
	bounded := durations.within(int64(time.Millisecond), int64(30*24*time.Hour))
	return rule[any, int64]{bounded.allowed + `, or "0" for no limit`, func(written any) (int64, *flaw) {
		if n, ok := durations.read(written); ok && n == 0 {
			return 0, nil
		}
		return bounded.parse(written)
	}}
}

// limits reads a limits table; it also says what to do where this host cannot
// enforce one of them.
func (l *loader) limits(s setting) (Limits, Enforcement) {
	result, enforcement := defaultLimits, Strict
	keys := []string{"enforcement"}
	for _, limit := range limits {
		keys = append(keys, limit.key)
	}
	if !s.table(keys...) {
		return result, enforcement
	}
	for _, limit := range limits {
		var n int64
		if take(s.get(limit.key), limit.rule, &n) {
			limit.set(&result, n)
		}
	}
	take(s.get("enforcement"), oneOf(Strict, BestEffort), &enforcement)
	return result, enforcement
}
