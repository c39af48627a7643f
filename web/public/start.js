// Sends the first requests of the inbox while the page's scripts are still being loaded. src/lib/client.ts takes their
// answers, each once.
const inbox = /^\/(?:inbox(?:\/([^/]+))?)?$/.exec(location.pathname)
if (inbox && !location.search) {
  const action = inbox[1] && `/api/v1/actions/${inbox[1]}`
  const paths = ['/api/v1/me', '/api/v1/inbox?view=summary&limit=40', '/api/v1/inbox/counts', '/api/v1/recovery']
  window.early = new Map(
    [...paths, ...(action ? [action, `${action}/forecast`] : [])].map((path) => {
      const answer = fetch(path, { headers: { Accept: 'application/json' }, redirect: 'error' })
      answer.catch(() => {}) // it is told where the answer is taken
      return [path, answer]
    }),
  )
}
