package dns

import "testing"

func BenchmarkAnswer(b *testing.B) {
	r := alone(b, crowded(20))
	for name, q := range map[string]string{"pod": "p7.ns.svc.cluster.local A", "headless": "many.ns.svc.cluster.local A", "nothing": "none.ns.svc.cluster.local A"} {
		msg := packed(b, q, edns(1232))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r.Answer(msg) == nil {
					b.Fatal("no answer")
				}
			}
		})
	}
}
