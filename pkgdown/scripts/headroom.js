// The navigation bar stays where it is.
jQuery.fn.headroom = function () {
  return this;
};
