// The address of what is shown: #/PATH?PARAMETERS. The path selects a view, the parameters are the
// filter and what the view adds.

// here returns the path without empty ends, and the parameters.
export function here() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?')
  return { path: path.split('/').map(decode), params: new URLSearchParams(query) }
}

function decode(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part // it names nothing
  }
}

// address returns the address of a view.
export function address(...path) { return '#/' + path.map(encodeURIComponent).join('/') }

// param returns a parameter of the address.
export function param(name) { return here().params.get(name) ?? '' }

// setParam changes a parameter of the address. It adds no entry to the history: every key that is
// pressed in a filter would be one.
export function setParam(name, value) {
  const [path, query = ''] = location.hash.split('?')
  const params = new URLSearchParams(query)
  if (value) params.set(name, value)
  else params.delete(name)
  const text = params.toString()
  history.replaceState(null, '', (path || '#/') + (text && '?' + text))
}
