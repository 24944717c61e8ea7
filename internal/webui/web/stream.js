// Streams of the API: Server-Sent Events. They are read with fetch, which can show the token
// in a header, and which reads no faster than the page draws.

let token = null

// remember takes the token, which other pages of this browser's podrun then have too.
export function remember(value) {
  token = value
  try {
    localStorage.setItem('token', value)
  } catch { /* storage is switched off: this page alone has it */ }
}

export function known() {
  try {
    token ??= localStorage.getItem('token')
  } catch { /* the same */ }
  return token !== null
}

const silence = 30_000 // ms without a word, after which a stream is dead

// ask sends a request with the token. An answer that is no success is an error.
async function ask(path, signal) {
  const answer = await fetch(path, { signal, headers: { Authorization: `Bearer ${token}` } })
  if (answer.ok) return answer
  const body = await answer.json().catch(() => ({}))
  throw Object.assign(new Error(body.error ?? `${answer.status} ${answer.statusText}`), { refused: answer.status === 401 })
}

// read returns a text of the API.
export async function read(path) { return (await ask(path)).text() }

// follow calls receive with the messages of a stream, one after the other. It connects again when the
// stream breaks off, until signal ends it or receive returns false. It calls state with "open",
// "broken" or "refused", and with the reason.
export async function follow(path, signal, receive, state) {
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 8000)) {
    try {
      const done = await once(path, signal, receive, () => {
        wait = 500
        state('open')
      })
      if (done) return
      state('broken', 'the stream has ended')
    } catch (e) {
      if (signal.aborted) return
      state(e.refused ? 'refused' : 'broken', e.message)
      if (e.refused) return
    }
    await new Promise(next => {
      setTimeout(next, wait)
      signal.addEventListener('abort', next, { once: true })
    })
  }
}

// once reads a stream to its end. It returns true if receive has returned false.
async function once(path, signal, receive, opened) {
  const mine = new AbortController()
  const stop = () => mine.abort()
  signal.addEventListener('abort', stop)
  let alarm = setTimeout(stop, silence)
  try {
    const answer = await ask(path, mine.signal)
    opened()
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    for (let rest = ''; ;) {
      const { value, done } = await reader.read()
      if (done) return false
      clearTimeout(alarm)
      alarm = setTimeout(stop, silence)
      const parts = (rest + value).split('\n\n')
      rest = parts.pop()
      for (const part of parts) {
        if (part.startsWith('data: ') && await receive(JSON.parse(part.slice(6))) === false) return true
      }
    }
  } finally {
    clearTimeout(alarm)
    signal.removeEventListener('abort', stop)
    mine.abort()
  }
}
