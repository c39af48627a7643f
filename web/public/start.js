// Sends the first requests of the inbox while the page's scripts are still being loaded. src/lib/client.ts takes their
// answers, each once.
const opened = /^\/(?:inbox(?:\/([^/]+))?)?$/.exec(location.pathname)
if (opened && !location.search) {
  const list = '/api/v1/inbox?view=summary&limit=24'
  const early = new Map()
  const send = (path) => {
    const answer = fetch(path, { headers: { Accept: 'application/json' }, redirect: 'error' })
    answer.catch(() => {}) // src/lib/client.ts handles the error where it takes the answer
    early.set(path, answer)
    return answer
  }
  const show = (id, decided) => {
    send(`/api/v1/actions/${id}`)
    if (decided) send(`/api/v1/actions/${id}/forecast`)
  }
  // The first item opens by itself as in src/views/inbox/ahead.ts.
  const first = async (answer) => {
    if (!answer.ok || history.state === 'closed' || matchMedia('(max-width: 900px)').matches) return
    const copy = answer.clone()
    const { items } = await copy.json()
    if (!items[0] || !early.has(list)) return
    show(items[0].action_id, ['approval', 'question', 'review'].includes(items[0].kind))
    send(`/api/v1/tools/${encodeURIComponent(items[0].tool)}`)
  }
  window.early = early
  // An answer that nobody took is too old by then.
  setTimeout(() => early.clear(), 5_000)
  send('/api/v1/me')
  const answer = send(list)
  send('/api/v1/inbox/counts')
  send('/api/v1/recovery')
  if (opened[1]) show(opened[1], true)
  else answer.then(first).catch(() => {})
}
