// One switch for the code of a notebook, figures that open in full size, and frames that the
// keyboard can scroll. Pages read well without it.
document.addEventListener("DOMContentLoaded", () => {
  const title = document.querySelector("article h1");
  if (title && document.querySelector("div.cell_input")) {
    const button = document.createElement("button");
    button.className = "code-switch";
    const show = (on) => {
      document.body.classList.toggle("with-code", on);
      button.setAttribute("aria-pressed", String(on));
      button.textContent = on ? "Hide the code" : "Show the code";
    };
    button.onclick = () => show(!document.body.classList.contains("with-code"));
    show(false);
    title.after(button);
  }
  // A label has to begin with the words that are seen.
  document.querySelectorAll("button[aria-label='Search']").forEach((button) => {
    button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim() || "Search");
  });
  document.querySelectorAll("article img").forEach((image) => {
    if (image.closest("a")) return;
    const link = document.createElement("a");
    link.href = image.src;
    image.replaceWith(link);
    link.append(image);
  });
  document.querySelectorAll(".cell_output .output, .cell_output pre, .pst-scrollable-table-container, div.highlight pre").forEach((frame) => {
    if (frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0;
  });
});
