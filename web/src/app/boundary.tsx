import { Component, type ReactNode } from 'react'
import { Button, Empty } from '../ui'

interface Props {
  // about is what is shown: another one is tried anew.
  about: string
  children: ReactNode
}

// Boundary keeps a mistake in a view from taking the page away.
export class Boundary extends Component<Props, { error?: Error; about?: string }> {
  override state: { error?: Error; about?: string } = {}

  static getDerivedStateFromError(error: Error) {
    return { error }
  }

  static getDerivedStateFromProps(props: Props, state: { error?: Error; about?: string }) {
    return state.about === props.about ? null : { about: props.about, error: undefined }
  }

  override render() {
    const { error } = this.state
    if (!error) return this.props.children
    // After an update of the server, the parts of the page that were not loaded yet are no longer there.
    const updated = /dynamically imported module|Importing a module|module script/.test(error.message)
    return (
      <Empty whole title={updated ? 'The page was updated' : 'This view stopped'}>
        <p role="alert">
          {updated
            ? 'Load it again to continue.'
            : 'The rest of the page works. Load the page again; if the problem persists, report this message:'}
        </p>
        {!updated && (
          <pre className="json" tabIndex={0}>
            {error.message}
          </pre>
        )}
        <Button kind="primary" onClick={() => location.reload()}>
          Load again
        </Button>
      </Empty>
    )
  }
}
