package policy

// sandboxHome is $HOME inside every sandbox.
const sandboxHome = "/home/sandbox"

const maxCaches = 64

// cacheTargets are the caches whose tool looks elsewhere than in .cache/NAME.
var cacheTargets = map[string]string{
	"npm":    ".npm",
	"cargo":  ".cargo",
	"go-mod": "go/pkg/mod",
}

// cacheName is the rule for a cache, which is chosen by name alone.
var cacheName = rule[string, Cache]{plainName.allowed, func(written string) (Cache, *flaw) {
	if _, f := plainName.parse(written); f != nil {
		return Cache{}, f
	}
	target, ok := cacheTargets[written]
	if !ok {
		target = ".cache/" + written
	}
	return Cache{Name: written, Target: sandboxHome + "/" + target}, nil
}}

// caches reads a profile's list of caches.
func (l *loader) caches(s setting) []Cache {
	result := []Cache{}
	for _, item := range s.items(maxCaches, "cache names") {
		var cache Cache
		if !take(item, cacheName, &cache) {
			continue
		}
		if hasCache(result, cache.Name) {
			item.reject(&flaw{allowed: "each cache once", next: "remove one"})
			continue
		}
		result = append(result, cache)
	}
	return result
}

func hasCache(caches []Cache, name string) bool {
	for _, c := range caches {
		if c.Name == name {
			return true
		}
	}
	return false
}
