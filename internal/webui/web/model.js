// What is known of the machine.

export class Model {
  loaded = false
  host = ''
  problem = ''
  every = 2 // seconds between two samples of usage
  kinds = new Map() // by kind: a Map of its objects, by NAMESPACE/NAME
  use = new Map() // by NAMESPACE/NAME, as podrun top -o json prints it
  history = new Map() // by NAMESPACE/NAME: [at, thousandths of a processor, bytes], the oldest first
  at = 0 // seconds since the start of the command
  now = 0 // ms since 1970 at that time, by the machine's clock
  ahead = 0 // by how many ms the machine's clock is ahead of this one

  // apply applies a message of the state stream.
  apply(u) {
    this.at = u.at
    this.now = Date.parse(u.now)
    this.ahead = this.now - Date.now()
    if (u.every) { // a first message: what was known is of another time
      this.kinds.clear()
      this.use.clear()
      this.host = u.host
      this.every = u.every
      this.history = new Map(Object.entries(u.history ?? {}))
      this.loaded = true
    }
    this.problem = u.problem ?? this.problem
    for (const [kind, news] of Object.entries(u.objects ?? {})) this.#change(kind, news)
    if (u.use) this.#used(u)
  }

  // of returns the objects of a kind.
  of(kind) { return this.kinds.get(kind) ?? new Map() }

  get pods() { return this.of('pods') } // {ready, status, restarts, object}, of which object is a v1.Pod

  // #change takes changed objects, in the order of their keys, and drops deleted ones.
  #change(kind, news) {
    const old = this.of(kind)
    this.kinds.set(kind, new Map(news.keys.map(key => [key, news.changed[key] ?? old.get(key)])))
  }

  #used(u) {
    this.use = new Map(u.use.map(one => [`${one.namespace}/${one.name}`, one]))
    if (u.every) return // it is part of the history that has just come
    for (const [key, one] of this.use) {
      if (!this.history.has(key)) this.history.set(key, [])
      const points = this.history.get(key)
      points.push([u.usedAt, one.cpuMillicores ?? null, one.memoryWorkingSetBytes ?? null])
      if (points.length > 450) points.shift()
    }
    for (const key of this.history.keys()) {
      if (!this.pods.has(key)) this.history.delete(key)
    }
  }

  // since returns how many seconds ago a time of the machine was.
  since(time) { return (Date.now() + this.ahead - Date.parse(time)) / 1000 }

  // timeAt returns the time, in ms since 1970, of seconds since the start of the command.
  timeAt(at) { return this.now - (this.at - at) * 1000 }

  // eventsOf returns the events of a pod, or of all, the latest first.
  eventsOf(key) {
    const all = [...this.of('events').values()].filter(e => !key || `${e.involvedObject.namespace}/${e.involvedObject.name}` === key)
    return all.sort((a, b) => Date.parse(b.lastTimestamp) - Date.parse(a.lastTimestamp))
  }
}
