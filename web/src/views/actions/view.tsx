export default function Actions() {
  return <h1>Actions</h1>
}
