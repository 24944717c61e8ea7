// What is known of the machine's pods.

export class Model {
  host = ''
  problem = ''
  every = 2 // seconds between two looks at what is used
  pods = new Map() // by NAMESPACE/NAME: {ready, status, restarts, object}, of which object is a v1.Pod
  events = new Map() // v1.Event
  use = new Map() // by NAMESPACE/NAME, as podrun top -o json has it
  history = new Map() // by NAMESPACE/NAME: [at, thousandths of a processor, bytes], the oldest first
  at = 0 // seconds since the command was begun
  ahead = 0 // by how many ms the machine's clock is ahead of this one

  // apply takes what the state stream says.
  apply(u) {
    this.at = u.at
    this.ahead = Date.parse(u.now) - Date.now()
    if (u.every) { // a first message: what was known is of another time
      for (const map of [this.pods, this.events, this.use]) map.clear()
      this.host = u.host
      this.every = u.every
      this.history = new Map(Object.entries(u.history ?? {}))
    }
    this.problem = u.problem ?? this.problem
    take(this.pods, u.pods)
    take(this.events, u.events)
    if (u.use) this.#used(u)
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

  // since says how many seconds ago a time of the machine was.
  since(time) { return (Date.now() + this.ahead - Date.parse(time)) / 1000 }

  // eventsOf are the events of a pod, or of all, the latest first.
  eventsOf(key) {
    const all = [...this.events.values()].filter(e => !key || `${e.involvedObject.namespace}/${e.involvedObject.name}` === key)
    return all.sort((a, b) => Date.parse(b.lastTimestamp) - Date.parse(a.lastTimestamp))
  }
}

// take takes changed things into a map, in the order of their keys, and drops those that are gone.
function take(map, news) {
  if (!news) return
  const old = new Map(map)
  map.clear()
  for (const key of news.keys) map.set(key, news.changed[key] ?? old.get(key))
}
