package runner

import (
	"context"
	"sync"
)

// eventKind is what may have happened.
type eventKind string

const (
	created  eventKind = "Create"
	modified eventKind = "Modify" // content, or what stat says
	removed  eventKind = "Remove"
	renamed  eventKind = "Rename" // away from this path; the new one, if it is in the workspace, is created
	resync   eventKind = "ResyncRequired"
)

// event is a hint that what is known of a workspace may not hold any more. It is no
// proof of anything: its path may be gone by now, a link, or not readable, and who
// made the change is not known.
//
// Epoch counts the watchers of a workspace, one after the other; each begins with
// ResyncRequired once it runs. Seq counts the events of a workspace. ResyncRequired
// says that events were lost: anything in the workspace may have changed.
type event struct {
	Kind  eventKind
	Path  string // relative to the workspace; "." is its root
	Epoch uint64
	Seq   uint64
}

// feed hands the events of one workspace to whoever subscribed.
type feed struct {
	feedMu        sync.Mutex // guards what follows
	epoch, seq    uint64
	subscriptions map[*subscription]struct{}
}

// begin is called when a watcher runs.
func (f *feed) begin() {
	f.feedMu.Lock()
	f.epoch++
	f.feedMu.Unlock()
	f.tell(resync, ".")
}

// tell never waits for a subscriber.
func (f *feed) tell(kind eventKind, path string) {
	f.feedMu.Lock()
	defer f.feedMu.Unlock()
	f.seq++
	for s := range f.subscriptions {
		s.put(event{kind, path, f.epoch, f.seq})
	}
}

// subscribe is for what happens from now on, until cancel. At most so many events
// wait to be taken.
func (f *feed) subscribe(most int) *subscription {
	s := &subscription{feed: f, most: most, wake: make(chan struct{}, 1)}
	f.feedMu.Lock()
	defer f.feedMu.Unlock()
	if f.subscriptions == nil {
		f.subscriptions = map[*subscription]struct{}{}
	}
	f.subscriptions[s] = struct{}{}
	return s
}

// subscription is one bounded queue of events.
type subscription struct {
	feed *feed
	most int
	wake chan struct{} // holds one when there is something to look at

	queueMu sync.Mutex // guards what follows
	queue   []event
	over    bool
}

// put adds an event. In a queue that is full one ResyncRequired takes the place of
// all, and it does what several in a row would.
func (s *subscription) put(e event) {
	s.queueMu.Lock()
	n := len(s.queue)
	switch {
	case n >= s.most:
		s.queue = append(s.queue[:0], event{resync, ".", e.Epoch, e.Seq})
	case n > 0 && e.Kind == resync && s.queue[n-1].Kind == resync && s.queue[n-1].Epoch == e.Epoch:
		s.queue[n-1] = e
	default:
		s.queue = append(s.queue, e)
	}
	s.queueMu.Unlock()
	s.signal()
}

func (s *subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// next waits for an event; false is the end.
func (s *subscription) next(ctx context.Context) (event, bool) {
	for {
		if e, ok, over := s.take(); ok || over {
			return e, ok
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return event{}, false
		}
	}
}

func (s *subscription) take() (e event, ok, over bool) {
	s.queueMu.Lock()
	defer s.queueMu.Unlock()
	if len(s.queue) == 0 {
		return event{}, false, s.over
	}
	e, s.queue = s.queue[0], s.queue[1:]
	return e, true, false
}

// cancel ends the subscription; what waits can still be taken.
func (s *subscription) cancel() {
	s.feed.feedMu.Lock()
	delete(s.feed.subscriptions, s)
	s.feed.feedMu.Unlock()
	s.queueMu.Lock()
	s.over = true
	s.queueMu.Unlock()
	s.signal()
}
